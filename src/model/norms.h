/* SPDX-License-Identifier: BSD-3-Clause
 * Squared norms of rows, counted by size: do a few rows decide sums over all?
 *
 * Floor: model.  Counts and sums are whole numbers, so that no partition changes them.
 * Formulas: doc/numerics.md, section 7. */
#ifndef MODEL_NORMS_H
#define MODEL_NORMS_H

#include "base/types.h"

enum {
  NORM_PARTS = 8,  /* bins of an octave */
  NORM_SPAN = 300, /* octaves from 1 on, to either side: squared norms of f32 rows have fewer */
  NORM_BINS = 2 * NORM_SPAN * NORM_PARTS,
  MASSIVE_NORM = 8, /* times the norm of the median row: norms that count as massive */
};

/* Bin 0 has 0 and all that is smaller; a sum is of significands, 24 bits each. */
struct norms {
  gidx count[NORM_BINS], sum[NORM_BINS];
};
void norms_add(struct norms *n, real square);
/* The squared norm of x[p], less k[p] unless it is NULL, in the order that all sums of it have. */
real norms_square(const float *x, idx p, const real *k);
/* Add those of x[count][p], less k[p] unless it is NULL. */
void norms_rows(struct norms *n, const float *x, gidx count, idx p, const real *k);
void norms_join(struct norms *n, const struct norms *more);

/* Bins that are not empty, as [bin, count, sum]: how many there are; all of them; and back, 0: they
 * are none. */
gidx norms_used(const struct norms *n);
void norms_pack(const struct norms *n, gidx *packed);
int norms_unpack(struct norms *n, const gidx *packed, gidx used);

/* The sum of all squares, to 23 bits each. */
real norms_total(const struct norms *n);

/* Rows of at least MASSIVE_NORM times the norm of the median row of those that are not zero, and
 * their share of all squares; that norm, of the least row of its bin, 0: all rows are zero. */
struct massive_rows {
  gidx rows, all;
  real share, median;
};
struct massive_rows norms_massive(const struct norms *n);

/* The square that rows have from `multiple` times the norm of that median row on: of the least one
 * of its bin.  Infinite where all rows are zero. */
real norms_bound(const struct norms *n, real multiple);
/* The share of all squares of rows that are so large, to a bin. */
real norms_fraction(const struct norms *n, real bound);

/* Warn where at most a tenth of the rows is massive, and has a quarter of the squares at least. */
void norms_warn(const struct massive_rows *m, const char *what);

#endif
