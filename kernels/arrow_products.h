/* SPDX-License-Identifier: BSD-3-Clause
 * Sums T and w over rows (N.9, N.12) by tensor instructions that are chains of fma.  A lane is here
 * one of the 32 chains of rows of (N.12), not a thread.  A warp has some of the block's lanes.  It
 * takes one, two or four of them at a time, and adds their sums by the tree of (N.12) as it goes.
 *
 * The triangle (arrow_types.h) is covered by products of 16 rows x 8 columns, whose operands are
 * columns of the extended Y.  u, the last column of the extended Y, makes a row of the triangle.
 * If k is a multiple of 16, u is a column instead, because as a row it would need a whole line of
 * products.
 *
 * -D MMA (tensor.h) */
#ifndef ARROW_PRODUCTS_H
#define ARROW_PRODUCTS_H

#include "arrow_row.h"
#include "cluster.h"
#include "tensor.h"

HOST_DEVICE int products_wide(int i)
{
  int columns = (ARROW_K + 7) / 8, below = 2 * i + 2;
  return (below < columns ? below : columns) + (ARROW_K % 16 == 0);
}

HOST_DEVICE int products_count(void)
{
  int count = 0, lines = ARROW_K % 16 == 0 ? ARROW_K / 16 : ARROW_K / 16 + 1;
  for (int i = 0; i < lines; i++) count += products_wide(i);
  return ARROW_K == 0 ? 0 : count;
}

enum {
  PRODUCTS = products_count(),
  IS_HALVED = arrow_is_halved(BORDER, HELD, ARROW_ALONE),
  TOGETHER = IS_HALVED && PRODUCTS == 3 ? 3 : 2, /* products in one pass over the rows */
  SPLIT = arrow_split(BORDER, ARROW_TEAM, HELD, ARROW_ALONE),
  LANE_WARPS = arrow_lane_warps(BORDER, ARROW_TEAM, HELD, ARROW_ALONE),
  ENTRIES = border_sums(BORDER),
  MOST_LANES = LANE_WARPS < 4 ? 16 : 8 /* the most lanes of a warp */
};
static_assert(!IS_HALVED || PRODUCTS <= TOGETHER, "all warps come once to group_write()");

/* Position of a product: line i of 16 rows, column j of 8.  Products are numbered line by line. */
struct product {
  int i, j;
};
static __device__ inline struct product product_of(int number)
{
  struct product p = {0, number};
#pragma unroll
  for (int i = 0; i < (BORDER + 15) / 16; i++)
    if (p.i == i && p.j >= products_wide(i)) {
      p.j -= products_wide(i);
      p.i++;
    }
  /* The last product of a line is the column of u. */
  if (BORDER % 16 == 0 && p.j == products_wide(p.i) - 1) p.j = BORDER / 8;
  return p;
}

/* The rows of a lane: the first, reals between rows, and their number. */
struct chain {
  const double *at;
  int step, count;
};

/* Add four terms of a chain to the products of a pass.  all: all four terms exist; if 0, each is
 * tested. */
static __device__ inline void terms_add(double sum[TOGETHER][4], int pass, const struct chain *c,
                                        int term, int all)
{
  int lane = threadIdx.x % WARP, position = (term + lane % 4) / FRAME;
  int there = all || position < c->count;
  const double *at = c->at + (there ? position : 0) * c->step + (term + lane % 4) % FRAME;
#pragma unroll
  for (int v = 0; v < TOGETHER; v++) {
    struct product p = product_of(pass * TOGETHER + v);
    if (pass * TOGETHER + v >= PRODUCTS) break;
    double left[2] = {at[16 * p.i * FRAME], 0}, right = at[8 * p.j * FRAME];
    if (16 * p.i + 8 <= BORDER) left[1] = at[(16 * p.i + 8) * FRAME];
    if (!there) { /* (-0)(+0) = -0, and adding -0 changes nothing */
      left[0] = left[1] = -0.0;
      right = 0;
    }
    pair_add(sum[v], sum[v] + 2, left, right);
  }
}

/* sum <- the products of two lanes, or of one lane if not `two`.  First the terms that both lanes
 * have, then the remaining ones. */
static __device__ inline void lanes_add(double sum[2][TOGETHER][4], int pass, const struct chain *c,
                                        int two)
{
  int least = c[0].count < c[1].count ? c[0].count : c[1].count;
  int most = c[0].count + c[1].count - least, term = 0;
#pragma unroll
  for (int s = 0; s < 2; s++)
#pragma unroll
    for (int v = 0; v < TOGETHER * 4; v++) sum[s][v / 4][v % 4] = 0;
#pragma unroll 2
  for (; term + 4 <= least * FRAME; term += 4) {
    terms_add(sum[0], pass, &c[0], term, 1);
    if (two) terms_add(sum[1], pass, &c[1], term, 1);
  }
#pragma unroll 1
  for (; term < most * FRAME; term += 4) {
    terms_add(sum[0], pass, &c[0], term, 0);
    if (two) terms_add(sum[1], pass, &c[1], term, 0);
  }
}

static __device__ inline void products_plus(double a[TOGETHER][4], const double b[TOGETHER][4])
{
#pragma unroll
  for (int v = 0; v < TOGETHER * 4; v++) a[v / 4][v % 4] += b[v / 4][v % 4];
}

static __device__ inline void products_copy(double to[TOGETHER][4], const double from[TOGETHER][4])
{
#pragma unroll
  for (int v = 0; v < TOGETHER * 4; v++) to[v / 4][v % 4] = from[v / 4][v % 4];
}

/* Index of entry (i, j) of T or w among the sums of a warp.  If the block has a single set of sums,
 * it is the index in S; otherwise sums are stored by rows of the triangle. */
static __device__ inline int sum_at(int i, int j)
{
  return LANE_WARPS == 1 ? arrow_column(BORDER, j) + i : i * (i + 1) / 2 + j;
}

/* Write the products that belong to the triangle; plus: add them to the sums that are there. */
static __device__ inline void products_write(double *to, int pass, const double sum[TOGETHER][4],
                                             int plus)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int v = 0; v < TOGETHER * 4; v++) {
    struct product p = product_of(pass * TOGETHER + v / 4);
    int i = 16 * p.i + v % 4 / 2 * 8 + lane / 4, j = 8 * p.j + lane % 4 * 2 + v % 2;
    if (pass * TOGETHER + v / 4 >= PRODUCTS) break;
    double own = sum[v / 4][v % 4];
    if (BORDER % 16 == 0 && j == BORDER && i < BORDER)
      to[sum_at(BORDER, i)] = plus ? own + to[sum_at(BORDER, i)] : own;
    else if (i <= BORDER && j <= i && j < BORDER)
      to[sum_at(i, j)] = plus ? own + to[sum_at(i, j)] : own;
  }
}

/* Write the sums of group `number` of warps to `to`.  If sums are halved, the upper half of the
 * groups first writes to the places of the lower half, which then adds its own sums; this contains
 * a barrier. */
static __device__ inline void group_write(double *to, int pass, const double sum[TOGETHER][4],
                                          int number)
{
  const int half = LANE_WARPS / 2;
  if (!IS_HALVED) products_write(to, pass, sum, 0);
  if (!IS_HALVED) return;
  if (number >= half) products_write(to - half * ENTRIES, pass, sum, 0);
  __syncthreads();
  if (number < half) products_write(to, pass, sum, 1);
}

/* The rows of lane `own` of the block. */
static __device__ inline struct chain chain_of(const struct rows *r, int n, int part, int own)
{
  struct chain c;
  int parts = ARROW_LANES >> r->shift;
  c.count = n / ARROW_LANES + (part + parts * own < n % ARROW_LANES);
  c.at = r->at + (c.count ? own : 0) * ROW + threadIdx.x % WARP / 4 * FRAME; /* always readable */
  c.step = (ROW << r->shift) + r->pad;
  return c;
}

/* A pass over the one or two lanes of a warp: `number` and number + warps. */
static __device__ inline void pass_add(double *to, int pass, const struct rows *r, int n, int part,
                                       int number, int warps)
{
  int two = 1 << r->shift > warps;
  double sum[2][TOGETHER][4];
  struct chain c[2] = {chain_of(r, n, part, number),
                       chain_of(r, n, part, number + (two ? warps : 0))};
  lanes_add(sum, pass, c, two);
  if (two) products_plus(sum[0], sum[1]);
  group_write(to, pass, sum[0], number);
}

/* sum[0] <- the sum of four of the lanes of a warp.  With `each` lanes per warp, these are
 * number + LANE_WARPS (place + {0, each / 2, each / 4, 3 each / 4}), in the order of the tree. */
static __device__ inline void four_add(double sum[4][TOGETHER][4], int pass, const struct rows *r,
                                       int n, int part, int number, int place)
{
  int quarter = (1 << r->shift) / (4 * LANE_WARPS), term = 0, least = n / ARROW_LANES;
  int own = number + LANE_WARPS * place, apart = LANE_WARPS * quarter;
  struct chain c = {r->at + own * ROW + threadIdx.x % WARP / 4 * FRAME, (ROW << r->shift) + r->pad,
                    least};
#pragma unroll
  for (int v = 0; v < 4 * TOGETHER * 4; v++) sum[v / (TOGETHER * 4)][v / 4 % TOGETHER][v % 4] = 0;
#pragma unroll 1
  for (; term + 4 <= least * FRAME; term += 4)
#pragma unroll
    for (int s = 0; s < 4; s++) {
      struct chain here = {c.at + (s % 2 * 2 + s / 2) * apart * ROW, c.step, c.count};
      terms_add(sum[s], pass, &here, term, 1);
    }
#pragma unroll 1
  for (; term < (n + ARROW_LANES - 1) / ARROW_LANES * FRAME; term += 4)
#pragma unroll
    for (int s = 0; s < 4; s++) {
      struct chain here = chain_of(r, n, part, own + (s % 2 * 2 + s / 2) * apart);
      terms_add(sum[s], pass, &here, term, 0);
    }
#pragma unroll
  for (int s = 0; s < 4; s += 2) products_plus(sum[s], sum[s + 1]);
  products_plus(sum[0], sum[2]);
}

/* A pass over the four or eight lanes of a warp, four at a time, so that the chain of one lane
 * continues while the chains of other lanes wait.  In this order only one sum has to be kept for
 * the tree. */
static __device__ inline void fours_add(double *to, int pass, const struct rows *r, int n, int part,
                                        int number)
{
  double sum[4][TOGETHER][4], kept[TOGETHER][4];
  four_add(sum, pass, r, n, part, number, 0);
  if (1 << r->shift == 8 * LANE_WARPS) {
    products_copy(kept, sum[0]);
    four_add(sum, pass, r, n, part, number, 1);
    products_plus(sum[0], kept);
  }
  group_write(to, pass, sum[0], number);
}

/* A pass over the sixteen lanes of a warp. */
static __device__ inline void sixteen_add(double *to, int pass, const struct rows *r, int n,
                                          int part, int number)
{
  double sum[4][TOGETHER][4], kept[2][TOGETHER][4];
#pragma unroll 1
  for (int turn = 0; turn < 4; turn++) {
    four_add(sum, pass, r, n, part, number, turn >> 1 | (turn & 1) << 1);
    if (turn & 1) products_plus(sum[0], kept[0]);
    if (turn == 3) products_plus(sum[0], kept[1]);
    if (turn == 1) products_copy(kept[1], sum[0]);
    products_copy(kept[0], sum[0]);
  }
  group_write(to, pass, sum[0], number);
}

/* to[..][ENTRIES] <- sets of sums over the block's lanes.  If a system has several blocks, these
 * are lanes `part`, part + blocks and so on.  If there is a single set of sums, they are written to
 * their places in S.  Returns the number of sets.  The remaining levels of the tree are left to
 * tree_of(). */
static __device__ inline int products_add(double *to, const struct rows *r, int n, int part)
{
  int warp = threadIdx.x / WARP, lanes = 1 << r->shift;
  int warps = lanes < LANE_WARPS ? lanes : LANE_WARPS, number = warp / SPLIT;
#pragma unroll
  for (int pass = 0; pass < (PRODUCTS + TOGETHER - 1) / TOGETHER; pass++)
    if (number < warps && warp % SPLIT == pass % SPLIT) {
      if (MOST_LANES == 16 && lanes == 16 * LANE_WARPS)
        sixteen_add(to + number * ENTRIES, pass, r, n, part, number);
      else if (lanes >= 4 * LANE_WARPS)
        fours_add(to + number * ENTRIES, pass, r, n, part, number);
      else
        pass_add(to + number * ENTRIES, pass, r, n, part, number, warps);
    }
  return warps >> IS_HALVED;
}

/* The tree of (N.12) over `count` sums of warps, or of blocks; count is a power of two up to 8. */
static __device__ inline double tree_of(const double *sums, int count, int by_blocks)
{
  double x[8];
#pragma unroll
  for (int v = 0; v < count; v++) x[v] = by_blocks ? cluster_get(sums, v) : sums[v * ENTRIES];
#pragma unroll
  for (int half = count / 2; half >= 1; half /= 2)
#pragma unroll
    for (int v = 0; v < half; v++) x[v] += x[v + half];
  return x[0];
}

/* The same for a count that is known only at run time: branches to code for constant counts. */
static __device__ inline double tree_any(const double *sums, int count, int by_blocks)
{
  if (count == 8) return tree_of(sums, 8, by_blocks);
  if (count == 4) return tree_of(sums, 4, by_blocks);
  return count == 2 ? tree_of(sums, 2, by_blocks) : sums[0];
}

#endif
