/* SPDX-License-Identifier: BSD-3-Clause
 * Products of 8 x 8 blocks in f64, whose sums are chains of fma, four terms at a time.
 *
 * -D MMA  1: tensor instructions, which add four products as a chain of fma; 0: the same by fma
 * A fragment of an operand has one number per lane.  Lane l has vector l / 4 of eight, and column
 * l % 4 of four.  In a block of sums, lane l has row l / 4, and columns 2 (l % 4) and 2 (l % 4) +
 * 1.  The lane is threadIdx.x. */
#ifndef TENSOR_H
#define TENSOR_H

#include "warp.h"

enum { BLOCK = 8, STEP = 4 };

/* Add the products over four columns to two blocks of sums, one below the other. */
static __device__ inline void pair_add(double upper[2], double lower[2], const double left[2],
                                       double right)
{
#if MMA
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+d"(upper[0]), "+d"(upper[1]), "+d"(lower[0]), "+d"(lower[1])
      : "d"(left[0]), "d"(left[1]), "d"(right));
#else
  int lane = threadIdx.x, row = lane / 4 * 4, column = lane % 4 * 8;
#pragma unroll
  for (int k = 0; k < STEP; k++) {
    double first = __shfl_sync(FULL_WARP, right, column + k);
    double second = __shfl_sync(FULL_WARP, right, column + 4 + k);
    double l = __shfl_sync(FULL_WARP, left[0], row + k);
    double m = __shfl_sync(FULL_WARP, left[1], row + k);
    upper[0] = fma(l, first, upper[0]);
    upper[1] = fma(l, second, upper[1]);
    lower[0] = fma(m, first, lower[0]);
    lower[1] = fma(m, second, lower[1]);
  }
#endif
}

#endif
