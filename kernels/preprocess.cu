/* SPDX-License-Identifier: BSD-3-Clause
 * preprocess: prepares rows as jobs use them: adds the terms of their hash (base/fingerprint.h),
 * subtracts the mean, and finds the lowest row that is not finite.
 *
 * grid    any number of blocks
 * block   PREPROCESS_WARPS warps; a warp has one row at a time
 * shared  none
 * sums    terms are integers modulo 2^64, so their order does not matter; the mean is subtracted in
 *         f64 and the result rounded once
 *
 * The launcher initialises `found` first. */
#include "types.h"

typedef unsigned long long word;

__device__ static word mix64(word x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ static word term(word bits, word position)
{
  return mix64(bits + 0x9e3779b97f4a7c15ull * (position + 1));
}

/* Mix two words into one. */
__device__ static word fold(word a, word b)
{
  word other = b * 0xc2b2ae3d27d4eb4full;
  return a + (other << 31 | other >> 33);
}

__device__ static word pair_of(float low, float high)
{
  return __float_as_uint(low) | (word)__float_as_uint(high) << 32;
}

/* Is it an infinity or NaN? */
__device__ static int is_bad(float x)
{
  return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u;
}

__device__ static float centered(float x, const double *mean, int c)
{
  return mean ? __double2float_rn(__dsub_rn((double)x, mean[c])) : x;
}

/* Prepare a row whose values are hashed by fours; adds its terms to *terms.  Returns 1 if a value
 * is not finite after the mean is subtracted, and 0 otherwise. */
__device__ static int row_by_fours(const struct preprocess_args &a, long long row, word *terms)
{
  int fours = a.p / 4, bad = 0;
  float4 *x = (float4 *)(a.rows + row * a.p);
  word place = (word)(a.first + row) * fours;
  for (int q = threadIdx.x % WARP; q < fours; q += WARP) {
    float4 v = x[q];
    *terms += term(fold(pair_of(v.x, v.y), pair_of(v.z, v.w)), place + q);
    v.x = centered(v.x, a.mean, 4 * q), v.y = centered(v.y, a.mean, 4 * q + 1);
    v.z = centered(v.z, a.mean, 4 * q + 2), v.w = centered(v.w, a.mean, 4 * q + 3);
    bad |= is_bad(v.x) | is_bad(v.y) | is_bad(v.z) | is_bad(v.w);
    if (a.mean) x[q] = v;
  }
  return bad;
}

/* The same for a row whose values are hashed one by one. */
__device__ static int row_by_ones(const struct preprocess_args &a, long long row, word *terms)
{
  int bad = 0;
  float *x = a.rows + row * a.p;
  word place = (word)(a.first + row) * a.p;
  for (int c = threadIdx.x % WARP; c < a.p; c += WARP) {
    float v = x[c];
    *terms += term(__float_as_uint(v), place + c);
    v = centered(v, a.mean, c);
    bad |= is_bad(v);
    if (a.mean) x[c] = v;
  }
  return bad;
}

extern "C" __global__ void preprocess(const __grid_constant__ struct preprocess_args a)
{
  word terms = 0, lowest = ~0ull;
  long long warps = (long long)gridDim.x * PREPROCESS_WARPS;
  for (long long row = (long long)blockIdx.x * PREPROCESS_WARPS + threadIdx.x / WARP; row < a.n;
       row += warps) {
    int bad = a.p % 4 ? row_by_ones(a, row, &terms) : row_by_fours(a, row, &terms);
    if (bad && (word)row < lowest) lowest = row;
  }
  for (int step = WARP / 2; step; step /= 2) {
    terms += __shfl_xor_sync(~0u, terms, step);
    word other = __shfl_xor_sync(~0u, lowest, step);
    lowest = other < lowest ? other : lowest;
  }
  if (threadIdx.x % WARP) return;
  atomicAdd(&a.found->terms, terms);
  if (lowest != ~0ull) atomicMin(&a.found->bad, lowest);
}
