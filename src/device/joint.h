/* SPDX-License-Identifier: BSD-3-Clause
 * The joint system's rows and the assembly of S (N.17, N.18), with the bits of model/joint.h for
 * any batch, thread count and variant.
 *
 * Floor: device.  Knows model and base; no MPI, no files.  Not collective.
 *
 * Rows come in batches.  joint_batch() makes each row's Y, threads sharing out the rows;
 * joint_add() adds the batch to S: a thread owns the columns of an atom and walks the rows that
 * have the atom, in ascending order.  The strict upper triangle of S holds E'E meanwhile. */
#ifndef DEVICE_JOINT_H
#define DEVICE_JOINT_H

#include "device/dense.h"
#include "model/joint.h"

struct joint_work {
  struct joint_state *state; /* owned */
};

/* Rows have at most `longest` atoms; a batch takes at most `room` bytes.  The joint is borrowed.
 * ERR_MEMORY; ERR_USAGE when room does not hold one row. */
int joint_open(struct joint_work *w, const struct joint *j, const struct dense *d, idx longest,
               gidx room);
void joint_close(struct joint_work *w);

/* Bytes taken by joint_open() beside room, and the room that one row of `longest` atoms needs. */
gidx joint_bytes(const struct joint *j, int threads, idx longest);
gidx joint_row_bytes(const struct joint *j, idx longest);

/* How many of n rows that begin at start[n + 1] fit a batch. */
idx joint_fit(const struct joint_work *w, const gidx *start, idx n);

/* Make the batch and add it to the sums.  ERR_INPUT names the first row that is not positive
 * definite. */
int joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);

/* Before the first batch: S[border][stride] <- 0 below, E'E above the diagonal. */
void joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride);
/* Add the batch to S. */
void joint_add(struct joint_work *w, real *s, gidx stride);

/* The atoms of the batch's row i, ascending: their borders stand side by side in its Y. */
struct joint_row {
  idx m, width, padded, count; /* kept vectors, borders, stride of y, atoms */
  const idx *atom;             /* [count] */
  const idx *at;               /* [count + 1] first border of each atom in the row */
  const real *t;               /* [width] the borders' codes */
  const real *y;               /* [m][padded] */
};
struct joint_row joint_row_of(const struct joint_work *w, idx i);

#endif
