/* SPDX-License-Identifier: BSD-3-Clause
 * One row of the joint system: making it, and reading it from the batch.
 *
 * Floor: device; included by joint*.c of both backends and lanczos.c only. */
#ifndef DEVICE_CPU_JOINT_ROW_H
#define DEVICE_CPU_JOINT_ROW_H

#include "device/joint.h"

struct joint_state;

/* Sizes of a row, and where its arrays begin in the batch. */
struct row_offsets {
  idx m, width, padded, count;   /* as in struct joint_row */
  gidx y, entry, border, vector; /* offsets of its Y, atoms, borders and vectors */
};

/* Work arrays of one thread; M: vectors of the longest row.  packed and ue also have a row for the
 * residual. */
struct row_space {
  const float **vector; /* [M] */
  real *packed;         /* [panels][p][rows] */
  real *g, *l;          /* [M][M] */
  real *out;            /* [columns][rows] */
  real *r;              /* [p] */
  real *ue;             /* [max_q][panels * rows] */
  idx *kept, *order;    /* [M], [longest] */
  real *c;              /* [max_q d][max_padded() + DENSE_MAX_LANES] for joint_add() */
};

/* Make row i of the batch, by one thread: its kept vectors, borders, codes and Y = L^-1 B. */
void joint_row_make(struct joint_state *s, struct row_space *w, const struct joint_rows *rows,
                    idx i);

/* Row i of the batch.  Its atoms are in ascending order, and so are their borders in Y. */
struct joint_row {
  idx m, width, padded, count; /* kept vectors, borders, stride of y, atoms */
  const idx *atom;             /* [count] */
  const idx *at;               /* [count + 1] first border of each atom in the row */
  const real *t;               /* [width] codes of the borders */
  const real *y;               /* [m][padded] */
};

struct joint_row joint_row_of(const struct joint_state *s, idx i);

#endif
