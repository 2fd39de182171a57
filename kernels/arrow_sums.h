/* SPDX-License-Identifier: BSD-3-Clause
 * Sums T and w over rows (N.9, N.12).  A thread has one lane (of N.12) and one tile of the
 * triangle.
 *
 * The including file defines ARROW_TILE, columns of a tile, and SUM_LANES, the number of lanes
 * whose rows are in shared memory.  Neighbouring threads of a warp have neighbouring lanes. */
#ifndef ARROW_SUMS_H
#define ARROW_SUMS_H

#include "arrow_row.h"

HOST_DEVICE int sums_padded(int values)
{
  int padded = 1;
  while (padded < values) padded *= 2;
  return padded;
}

enum {
  TILE = ARROW_TILE,
  TILES = arrow_tiles(BORDER, TILE),
  SUMS = sums_padded(TILE * TILE),                  /* of a thread; sums from TILE^2 on are 0 */
  TOTALS = SUMS > SUM_LANES ? SUMS / SUM_LANES : 1, /* of a thread, after tile_fold() */
};

/* A tile: its first row and its first column of the triangle. */
struct tile {
  int i, j;
};

static __device__ inline struct tile tile_of(int number)
{
  struct tile t = {0, 0};
  while (number > t.i) number -= ++t.i;
  t.i *= TILE;
  t.j = number * TILE;
  return t;
}

/* Add the products of rows lane, lane + SUM_LANES, .. < count. */
static __device__ inline void tile_add(double sum[SUMS], struct tile t, const double *rows,
                                       int lane, int count)
{
  const double *left = rows + t.i * FRAME, *right = rows + t.j * FRAME;
#pragma unroll 1
  for (int q = lane; q < count; q += SUM_LANES)
#pragma unroll
    for (int m = 0; m < FRAME; m++) {
      double a[TILE], b[TILE];
#pragma unroll
      for (int v = 0; v < TILE; v++) {
        a[v] = left[q * ROW + v * FRAME + m];
        b[v] = right[q * ROW + v * FRAME + m];
      }
#pragma unroll
      for (int v = 0; v < TILE * TILE; v++) sum[v] = fma(a[v / TILE], b[v % TILE], sum[v]);
    }
}

/* Add the lanes by the tree of (N.12).  At each level a thread gives one half of its sums to its
 * partner, and adds the partner's numbers to the other half.  Returns the number of the first sum
 * that the thread has in the end, or -1 if another thread has the same sums.  All threads of the
 * warp take part. */
static __device__ inline int tile_fold(double sum[SUMS])
{
  int lane = threadIdx.x % SUM_LANES, first = 0, held = SUMS, again = 0;
#pragma unroll
  for (int half = SUM_LANES / 2; half >= 1; half /= 2) {
    int upper = (lane & half) != 0;
    if (held == 1) {
      sum[0] += __shfl_xor_sync(FULL_WARP, sum[0], half);
      again |= upper;
      continue;
    }
    held /= 2;
#pragma unroll
    for (int v = 0; v < SUMS / 2; v++) {
      if (v >= held) break;
      double low = sum[v], high = sum[v + held];
      double other = __shfl_xor_sync(FULL_WARP, upper ? low : high, half);
      sum[v] = (upper ? high : low) + other;
    }
    first += upper ? held : 0;
  }
  return again ? -1 : first;
}

/* Row i and column j of the triangle for sum number v of a tile; returns 0 if the triangle has no
 * such entry. */
static __device__ inline int tile_position(struct tile t, int v, int *i, int *j)
{
  *i = t.i + v / TILE;
  *j = t.j + v % TILE;
  return v < TILE * TILE && *i <= BORDER && *j <= *i && *j < BORDER;
}

#endif
