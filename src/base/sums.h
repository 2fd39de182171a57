/* SPDX-License-Identifier: BSD-3-Clause
 * Sums whose order does not depend on how rows are divided: the tree of (N.0) over rows, the lanes
 * of (N.12) over an atom's rows, and lane products over columns.
 *
 * Floor: base.  Formulas: doc/numerics.md.
 *
 * A chain is a sum whose terms are added one after another.  A sum block is a run of ROW_BLOCK
 * consecutive global rows, over which (N.0) makes one chain. */
#ifndef BASE_SUMS_H
#define BASE_SUMS_H

#include "base/types.h"

enum {
  ROW_BLOCK = 4096, /* rows of a sum block */
  TREE_LEVELS = 52, /* for up to 2^51 sum blocks */
};

/* A sum over global rows as (N.0) defines it, for rows that arrive in ascending order: a chain in
 * each sum block; blocks are joined by the binary tree aligned at powers of two.  Start from a
 * zeroed struct. */
struct row_sum {
  real chain; /* of the sum block in progress */
  gidx rows;  /* added so far */
  /* tree[l] is a finished subtree of 2^l blocks if bit l of the number of blocks is set. */
  real tree[TREE_LEVELS];
};
void row_sum_add(struct row_sum *s, real value);
real row_sum_total(const struct row_sum *s);

/* The same for n columns, given the chain of each sum block.  tree is [TREE_LEVELS][n], owned by
 * the caller; *blocks is 0 at first, and counts the blocks that were pushed. */
void block_sum_push(real *tree, gidx *blocks, idx n, const real *chain);
void block_sum_total(const real *tree, gidx blocks, idx n, real *total);

/* A sum over the rows of one atom as (N.12) defines it.  Rows, by position in the atom's list, are
 * divided into segments.  In a segment, row i belongs to lane i mod 32, an fma chain from +0.
 * Lanes are added by a tree, segments in ascending order.  Positions must not decrease; a row may
 * add several products.  Start from a zeroed struct. */
enum { LANE_COUNT = 32, LANE_SEGMENT = 65536 };
struct lane_sum {
  real lane[LANE_COUNT]; /* of the segment in progress */
  real done;             /* sum of the segments before it */
  gidx segment;          /* number of the segment in progress */
};
void lane_sum_fma(struct lane_sum *s, gidx position, real a, real b);
real lane_sum_total(const struct lane_sum *s);

/* lane[0] <- the sum of 32 lanes: lane += lane + 16, + 8, + 4, + 2, + 1. */
void lanes_fold(real *lane);

/* The lane product of a[n] and b[n]: term c belongs to lane c mod 32, an fma chain from +0; lanes
 * are added by the same tree. */
real lane_product(const real *a, const real *b, gidx n);

#endif
