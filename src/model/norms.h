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
  NORM_SPAN = 300, /* octaves above 1, and octaves below 1: squared norms of f32 rows need fewer */
  NORM_BINS = 2 * NORM_SPAN * NORM_PARTS,
  /* a row is massive if its norm is at least this many times the norm of the median row */
  MASSIVE_NORM = 8,
};

/* Bin 0 also has 0 and all values below its lower end.  sum[b] is the sum of the significands of
 * the values, cut to 24 bits; sum[0] is 0. */
struct norms {
  gidx count[NORM_BINS], sum[NORM_BINS];
};
void norms_add(struct norms *n, real square);
/* The squared norm of x[p], less k[p] unless k is NULL, added in lanes of columns. */
real norms_square(const float *x, idx p, const real *k);
/* Add the squared norms of x[count][p], less k[p] unless that is NULL. */
void norms_rows(struct norms *n, const float *x, gidx count, idx p, const real *k);
void norms_join(struct norms *n, const struct norms *more);

/* The bins that are not empty, as packed[used] of [bin, count, sum].  norms_used() returns their
 * number, norms_pack() writes them.  norms_unpack() reads them; it returns 0 if they are not
 * valid. */
gidx norms_used(const struct norms *n);
void norms_pack(const struct norms *n, gidx *packed);
int norms_unpack(struct norms *n, const gidx *packed, gidx used);

/* The sum of all squares, each cut to 24 bits. */
real norms_total(const struct norms *n);

/* Massive rows have at least MASSIVE_NORM times the norm of the median row, where rows of zeros do
 * not count.  share: their part of the sum of all squares.  median: the norm of the median row,
 * taken as the lower end of its bin; 0: all rows are zero. */
struct massive_rows {
  gidx rows, all;
  real share, median;
};
struct massive_rows norms_massive(const struct norms *n);

/* The square of `multiple` times the norm of the median row, where this norm is the lower end of
 * its bin.  Infinite if all rows are zero. */
real norms_bound(const struct norms *n, real multiple);
/* Rows whose square is at least `bound`: their part of the sum of all squares.  Bins are not split,
 * so all rows in the bin of `bound` count. */
real norms_fraction(const struct norms *n, real bound);

/* Warn if at most a tenth of the rows is massive, and these have at least a quarter of the
 * squares. */
void norms_warn(const struct massive_rows *m, const char *what);

#endif
