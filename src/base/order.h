/* SPDX-License-Identifier: BSD-3-Clause
 * What makes results independent of the partition: the tree sum of (N.0), the lanes of (N.12) and
 * counter-based random numbers.
 *
 * Floor: base.  Formulas: doc/numerics.md. */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#include "base/types.h"

enum {
  ROW_BLOCK = 4096, /* consecutive global rows of one chain in (N.0) */
  TREE_LEVELS = 52, /* row blocks up to 2^51 */
};

/* A sum over global rows as (N.0) defines it, for rows that arrive in ascending order: a chain
 * inside each row block, blocks joined by the binary tree aligned at powers of two.
 * Start from a zeroed struct. */
struct row_sum {
  real chain; /* of the row block in progress */
  gidx rows;  /* added so far */
  real
      tree[TREE_LEVELS]; /* tree[l]: finished subtree of 2^l blocks, where bit l of blocks is set */
};
void row_sum_add(struct row_sum *s, real value);
real row_sum_total(const struct row_sum *s);

/* The same for whole row blocks whose chains were added elsewhere, n columns at once.
 * tree is [TREE_LEVELS][n], owned by the caller; *blocks counts those pushed, from 0. */
void block_sum_push(real *tree, gidx *blocks, idx n, const real *chain);
void block_sum_total(const real *tree, gidx blocks, idx n, real *total);

/* A sum over the rows of one atom as (N.12) defines it: rows, by position in the atom's list, are
 * cut in segments; inside a segment row i belongs to lane i mod 32, an fma chain from +0; lanes are
 * added by a tree, segments in ascending order.  Positions do not fall; a row may add several
 * products.  Start from a zeroed struct. */
enum { LANE_COUNT = 32, LANE_SEGMENT = 65536 };
struct lane_sum {
  real lane[LANE_COUNT]; /* of the segment in progress */
  real done;             /* segments before it */
  gidx segment;          /* in progress */
};
void lane_sum_fma(struct lane_sum *s, gidx position, real a, real b);
real lane_sum_total(const struct lane_sum *s);

/* lane[0] <- the sum of 32 lanes: lane += lane + 16, + 8, + 4, + 2, + 1. */
void lanes_fold(real *lane);

/* A step through 0 .. count - 1, count >= 1, that visits all, neighbours about a golden section of
 * count apart: the first ones are spread over all. */
idx golden_stride(idx count);

/* Counter-based random numbers: a pure function of (seed, stream, counter). */
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t counter);

/* Uniform in [0, bound), bound >= 1, by multiplication of the upper 32 bits' worth. */
uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t bound);

/* Nearly normal, mean 0, variance 1: twelve 16-bit uniforms added as integers, no libm. */
real random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* splitmix64's finaliser, a bijection of 64-bit words (Steele, Lea, Flood 2014). */
static inline uint64_t mix64(uint64_t x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

#endif
