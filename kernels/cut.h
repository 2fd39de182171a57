/* SPDX-License-Identifier: BSD-3-Clause
 * Finds the cut that selects the largest values of a row: the key of the smallest selected value.
 * A key is the bit pattern of a value.  The key is found digit by digit, the highest first.  A warp
 * has a row.  Values that are not positive are never selected.
 *
 * Floor: kernels. */
#ifndef CUT_H
#define CUT_H

#include "warp.h"

enum { DIGIT = 8, DIGITS = 1 << DIGIT, OWN = DIGITS / WARP, CUT_UNROLLED = 4 };

/* The number of values that are positive.  The others are +0. */
static __device__ inline int values_count(const float *values, int stride)
{
  int n = 0;
#pragma unroll CUT_UNROLLED
  for (int i = threadIdx.x % WARP; i < stride; i += WARP) n += values[i] > 0;
  return __reduce_add_sync(FULL_WARP, n);
}

/* bins[DIGITS] <- the number of keys for each value of the next digit, among keys that begin with
 * `prefix`. */
static __device__ inline void digits_count(const float *values, int stride, int prefix, int shift,
                                           int *bins)
{
  int lane = threadIdx.x % WARP;
  for (int i = lane; i < DIGITS; i += WARP) bins[i] = 0;
  __syncwarp();
#pragma unroll CUT_UNROLLED
  for (int i = lane; i < stride; i += WARP) {
    int key = __float_as_int(values[i]);
    if (key > 0 && (long long)(key ^ prefix) >> (shift + DIGIT) == 0)
      atomicAdd(&bins[key >> shift & (DIGITS - 1)], 1);
  }
  __syncwarp();
}

/* Returns the digit of the *want-th largest key, and sets *want to the rank of this key among the
 * keys with that digit. */
static __device__ inline int digit_find(const int *bins, int *want)
{
  int lane = threadIdx.x % WARP, top = DIGITS - 1 - lane * OWN, own = 0;
  for (int i = 0; i < OWN; i++) own += bins[top - i];
  int above = own;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    int other = __shfl_up_sync(FULL_WARP, above, step);
    if (lane >= step) above += other;
  }
  above -= own;
  int has = above < *want && *want <= above + own, digit = top, rank = *want - above;
  for (; has && rank > bins[digit]; digit--) rank -= bins[digit];
  int who = __ffs(__ballot_sync(FULL_WARP, has)) - 1;
  *want = __shfl_sync(FULL_WARP, rank, who);
  return __shfl_sync(FULL_WARP, digit, who);
}

static __device__ inline struct encoder_cut cut_find(const float *values, int stride, int top,
                                                     int *bins)
{
  struct encoder_cut cut = {0, top};
  for (int shift = 32 - DIGIT; shift >= 0; shift -= DIGIT) {
    digits_count(values, stride, cut.key, shift, bins);
    cut.key |= digit_find(bins, &cut.ties) << shift;
    __syncwarp();
  }
  return cut;
}

#endif
