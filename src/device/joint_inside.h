/* SPDX-License-Identifier: BSD-3-Clause
 * The state of device/joint.h, which joint_row.c fills row by row and joint.c adds up.
 *
 * Floor: device; included by joint*.c only. */
#ifndef DEVICE_JOINT_INSIDE_H
#define DEVICE_JOINT_INSIDE_H

#include "device/dense_inside.h"
#include "device/joint.h"

/* Where a row's parts are in the batch. */
struct row_place {
  idx m, width, padded, count;
  gidx y, entry, border, vector; /* offsets: of Y, atoms, borders, vectors */
};

/* What one thread works with; M vectors of the longest row, and its residual as one more. */
struct row_space {
  const float **vector; /* [M] */
  real *packed;         /* [panels][p][rows] */
  real *g, *l;          /* [M][M] */
  real *out;            /* [columns][rows] */
  real *r;              /* [p] */
  real *ue;             /* [q_most][panels * rows] */
  idx *kept, *order;    /* [M], [longest] */
  real *c;              /* [k_most][padded_most + LANES_MOST] of the assembly */
};

struct joint_state {
  struct arena arena;
  const struct joint *j;
  const struct dense_loops *loops;
  int threads;
  idx longest, q_most;
  gidx room;
  real *e;   /* of each atom [p][q], at p direction[a] */
  real *own; /* [directions][q_most] E'E inside each atom */
  struct row_space *space;
  /* the batch; arrays grow */
  idx n;
  struct row_place *rows;
  gidx rows_room, border_room, vector_room, y_room;
  idx *atom, *at;      /* [entries], [entries + rows] */
  real *t, *pivot, *y; /* borders, vectors, Y */
  real *error;         /* [n] */
  gidx error_room, atom_room, at_room;
  gidx *list_start; /* [k + 1] rows of each atom */
  idx *list_row, *list_at;
  gidx list_room, list_at_room;
};

/* Make row i of the batch by one thread.  Returns 0 when its block is not positive definite. */
int joint_row_make(struct joint_state *s, struct row_space *w, const struct joint_rows *rows,
                   idx i);

#endif
