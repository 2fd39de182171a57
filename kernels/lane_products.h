/* SPDX-License-Identifier: BSD-3-Clause
 * Lane products (doc/numerics.md) of vectors in shared memory.  Lane l of a warp has the columns c
 * with c mod 32 = l, and adds them in ascending order.  Then lanes are added by a tree.
 *
 * All threads of the warp take part; threadIdx.x is the lane. */
#ifndef LANE_PRODUCTS_H
#define LANE_PRODUCTS_H

#include "forms.h"
#include "warp.h"

/* The sum over each group of `count` neighbouring lanes, a power of two; all of them get it. */
static __device__ inline double lanes_join(double acc, int count)
{
#pragma unroll
  for (int half = WARP / 2; half >= 1; half /= 2)
    if (half < count) acc += __shfl_xor_sync(FULL_WARP, acc, half);
  return acc;
}

/* The sum over all lanes; all of them get it. */
static __device__ inline double lanes_total(double acc)
{
  return lanes_join(acc, WARP);
}

HOST_DEVICE int lanes_padded(int sums)
{
  int padded = 1;
  while (padded < sums) padded *= 2;
  return padded;
}

/* Sum each of COUNT numbers over all lanes; COUNT is a power of two.  At each level a lane that has
 * several sums gives half of them to its partner, and adds the partner's numbers to the other half.
 * In the end acc[0] is the sum whose number is returned; 32 / COUNT lanes have it. */
template <int COUNT> static __device__ inline int lanes_totals(double *acc)
{
  static_assert(COUNT <= WARP && (COUNT & (COUNT - 1)) == 0, "a lane is left with one sum");
  int number = 0;
#pragma unroll
  for (int half = WARP / 2, held = COUNT; half >= 1; half /= 2) {
    int upper = (threadIdx.x & half) != 0;
    if (held == 1) {
      acc[0] += __shfl_xor_sync(FULL_WARP, acc[0], half);
      continue;
    }
    held /= 2;
#pragma unroll
    for (int v = 0; v < COUNT / 2; v++) {
      if (v >= held) break;
      double low = acc[v], high = acc[v + held];
      double other = __shfl_xor_sync(FULL_WARP, upper ? low : high, half);
      acc[v] = (upper ? high : low) + other;
    }
    number += upper ? held : 0;
  }
  return number;
}

/* Call use(c) for the columns of this lane, in ascending order; the loop is unrolled by AHEAD. */
template <int AHEAD = 4, class Use> static __device__ inline void lane_each(int p, Use use)
{
  int lane = threadIdx.x % WARP, whole = p / WARP * WARP;
#pragma unroll AHEAD
  for (int c = lane; c < whole; c += WARP) use(c);
  if (whole + lane < p) use(whole + lane);
}

/* The lane product of two vectors; all lanes get it. */
static __device__ __noinline__ double lane_product(const double *x, const double *y, int p)
{
  double acc = 0;
  __builtin_assume(__isShared(x));
  __builtin_assume(__isShared(y));
  lane_each(p, [&](int c) { acc = fma(x[c], y[c], acc); });
  return lanes_total(acc);
}

#endif
