/* SPDX-License-Identifier: BSD-3-Clause
 * Sums whose order no partition changes: the tree of (N.0) over rows, the lanes of (N.12) over an
 * atom's rows, lane products over columns.
 *
 * Floor: base.  Formulas: doc/numerics.md. */
#ifndef BASE_SUMS_H
#define BASE_SUMS_H

#include "base/types.h"

enum {
  ROW_BLOCK = 4096, /* consecutive global rows of one chain in (N.0) */
  TREE_LEVELS = 52, /* sum blocks up to 2^51 */
};

/* A sum over global rows as (N.0) defines it, for rows that arrive in ascending order: a chain
 * inside each sum block, blocks joined by the binary tree aligned at powers of two.
 * Start from a zeroed struct. */
struct row_sum {
  real chain; /* of the sum block in progress */
  gidx rows;  /* added so far */
  /* tree[l] is a finished subtree of 2^l blocks where bit l of the number of blocks is set. */
  real tree[TREE_LEVELS];
};
void row_sum_add(struct row_sum *s, real value);
real row_sum_total(const struct row_sum *s);

/* The same for whole sum blocks whose chains were added elsewhere, n columns at a time.
 * tree is [TREE_LEVELS][n], owned by the caller; *blocks, from 0, counts the blocks pushed. */
void block_sum_push(real *tree, gidx *blocks, idx n, const real *chain);
void block_sum_total(const real *tree, gidx blocks, idx n, real *total);

/* A sum over the rows of one atom as (N.12) defines it: rows, by position in the atom's list, are
 * divided into segments; inside a segment row i belongs to lane i mod 32, an fma chain from +0;
 * lanes are added by a tree, segments in ascending order.  Positions must not decrease; a row may
 * add several products.  Start from a zeroed struct. */
enum { LANE_COUNT = 32, LANE_SEGMENT = 65536 };
struct lane_sum {
  real lane[LANE_COUNT]; /* of the segment in progress */
  real done;             /* sum of the segments before it */
  gidx segment;          /* its number */
};
void lane_sum_fma(struct lane_sum *s, gidx position, real a, real b);
real lane_sum_total(const struct lane_sum *s);

/* lane[0] <- the sum of 32 lanes: lane += lane + 16, + 8, + 4, + 2, + 1. */
void lanes_fold(real *lane);

/* The lane product of a[n] and b[n]: term c belongs to lane c mod 32, an fma chain from +0; lanes
 * are added by the same tree. */
real lane_product(const real *a, const real *b, gidx n);

#endif
