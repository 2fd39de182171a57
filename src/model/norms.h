/* SPDX-License-Identifier: BSD-3-Clause
 * Squared norms of rows, counted by size, to find whether a few rows dominate sums over all rows.
 *
 * Floor: model.  Counts and sums are integers, so that no partition changes them.  Formulas:
 * doc/numerics.md, section 7. */
#ifndef MODEL_NORMS_H
#define MODEL_NORMS_H

#include "base/types.h"

enum {
  NORM_PARTS = 8,  /* bins per octave */
  NORM_SPAN = 300, /* octaves above 1, and below it: squared norms of f32 rows need fewer */
  NORM_BINS = 2 * NORM_SPAN * NORM_PARTS,
  MASSIVE_NORM = 8, /* a row is massive if its norm is this many times that of the median row */
};

/* Bin 0 has 0 and all values below the first octave.  A sum is of significands, 24 bits each. */
struct norms {
  gidx count[NORM_BINS], sum[NORM_BINS];
};
void norms_add(struct norms *n, real square);
/* The squared norm of x[p], less k[p] unless that is NULL, in the order of the other sums of
 * squares. */
real norms_square(const float *x, idx p, const real *k);
/* Add the squared norms of x[count][p], less k[p] unless that is NULL. */
void norms_rows(struct norms *n, const float *x, gidx count, idx p, const real *k);
void norms_join(struct norms *n, const struct norms *more);

/* The bins that are not empty, as [bin, count, sum]: their number; pack them; unpack them.
 * Unpacking returns 0 if they are not valid. */
gidx norms_used(const struct norms *n);
void norms_pack(const struct norms *n, gidx *packed);
int norms_unpack(struct norms *n, const gidx *packed, gidx used);

/* The sum of all squares, each to 23 bits. */
real norms_total(const struct norms *n);

/* Massive rows have at least MASSIVE_NORM times the norm of the median row, where rows of zeros do
 * not count.  share: their part of all squares.  median: that norm, of the least row of its bin; 0:
 * all rows are zero. */
struct massive_rows {
  gidx rows, all;
  real share, median;
};
struct massive_rows norms_massive(const struct norms *n);

/* The least square of a row whose norm is at least `multiple` times that of the median row; by the
 * least row of the median's bin.  Infinite if all rows are zero. */
real norms_bound(const struct norms *n, real multiple);
/* The part of all squares that rows with at least this square have, as exactly as bins allow. */
real norms_fraction(const struct norms *n, real bound);

/* Warn if at most a tenth of the rows is massive, and these have at least a quarter of the
 * squares. */
void norms_warn(const struct massive_rows *m, const char *what);

#endif
