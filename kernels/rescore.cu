/* SPDX-License-Identifier: BSD-3-Clause
 * rescore: computes the exact score (N.1), its positive part, or the gate of every pair of a row
 * and an atom that prune.cu has listed.
 *
 * A piece is `piece` columns.  A warp adds a piece for all its pairs before it begins the next one,
 * and keeps sums in `values` between pieces.  Warps begin together and have equally many pairs, so
 * they are at about the same piece.  Vectors that pairs share then stay in the second-level cache.
 * Frames have one piece, because their gates need whole scores.
 *
 * grid    any number of blocks of RESCORE_WARPS warps.  Warps get equally many pairs, and do 32 of
 *         them at a time, one per lane
 * shared  static: 32 columns of 32 vectors per warp, twice
 * sums    columns ascending from +0, two roundings per term; gates: vectors ascending */
#include "async_copy.h"
#include "screen_types.h"
#include "warp.h"

enum { DEPTH = 32, PITCH = DEPTH + 4 /* floats, without bank conflicts */ };

/* The pair of a lane, and the warp's memory. */
struct work {
  int row, slot; /* -1: none */
  float (*vectors)[WARP * PITCH];
};

/* Begin to copy columns column .. column + 31 of the lanes' vectors.  For each vector, 8 lanes copy
 * 128 bytes. */
static __device__ inline void columns_order(const struct screen_args *a, const struct work *w,
                                            int vector, int column)
{
  int lane = threadIdx.x % WARP, c = column + lane % 8 * 4;
#pragma unroll
  for (int i = 0; i < WARP; i += 4) {
    int pair = i + lane / 8, slot = __shfl_sync(FULL_WARP, w->slot, pair);
    const float *from = a->frames + ((long long)slot * a->d + vector) * a->pitch + c;
    float *to = w->vectors[column / DEPTH % 2] + pair * PITCH + lane % 8 * 4;
    if (c < a->pitch && slot >= 0) async_copy16(to, from);
  }
  async_commit();
}

static __device__ inline float four_add(float z, const float *x, int left, const float *d)
{
  float y[4];
  *(float4 *)y = *(const float4 *)d;
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i < left) z = __fadd_rn(z, __fmul_rn(x[i], y[i]));
  return z;
}

/* z <- z + products of the DEPTH columns from `column` on, which have been copied. */
static __device__ inline float columns_add(const struct screen_args *a, const struct work *w,
                                           int column, float z)
{
  const float *x = a->x + (long long)(w->row < 0 ? 0 : w->row) * a->p + column;
  const float *d = w->vectors[column / DEPTH % 2] + threadIdx.x % WARP * PITCH;
  int left = a->p - column < DEPTH ? a->p - column : DEPTH;
  if (a->p % 4 == 0 && left == DEPTH) {
#pragma unroll
    for (int c = 0; c < DEPTH; c += 4) {
      float four[4];
      *(float4 *)four = *(const float4 *)(x + c);
      z = four_add(z, four, 4, d + c);
    }
  } else {
    for (int c = 0; c < left; c += 4) z = four_add(z, x + c, left - c, d + c);
  }
  return z;
}

/* z <- z + products of columns from .. to - 1; from is a multiple of DEPTH. */
static __device__ inline float score_add(const struct screen_args *a, const struct work *w,
                                         int vector, int from, int to, float z)
{
  columns_order(a, w, vector, from);
  for (int column = from; column < to; column += DEPTH) {
    if (column + DEPTH < to)
      columns_order(a, w, vector, column + DEPTH);
    else
      async_commit();
    ASYNC_WAIT(1);
    __syncwarp();
    z = columns_add(a, w, column, z);
    __syncwarp();
  }
  return z;
}

/* Add columns from .. to - 1 to the values of the pairs first .. first + 31; pairs from `end` on
 * are left out. */
static __device__ inline void pairs_add(const struct screen_args *a, float (*vectors)[WARP * PITCH],
                                        int first, int end, int from, int to)
{
  int at = first + threadIdx.x % WARP;
  struct screen_pair none = {-1, 0}, pair = at < end ? a->pairs[at] : none;
  struct work w = {pair.row, pair.row < 0 ? -1 : pair.slot, vectors};
  float value = pair.row >= 0 && from ? a->values[at] : 0;
  for (int m = 0; m < a->d; m++) {
    float z = score_add(a, &w, m, from, to, a->d == 1 ? value : 0);
    value = a->d == 1 ? z : m == 0 ? __fmul_rn(z, z) : __fadd_rn(value, __fmul_rn(z, z));
  }
  /* All values of certified rows are finite. */
  if (a->positive && to == a->p && !(value > 0)) value = 0;
  if (pair.row >= 0) a->values[at] = value;
}

extern "C" __global__ void __launch_bounds__(RESCORE_WARPS *WARP)
    rescore(const __grid_constant__ struct screen_args a)
{
  __shared__ __align__(16) float vectors[RESCORE_WARPS][2][WARP * PITCH];
  int warp = threadIdx.x / WARP;
  int pairs = a.totals->pairs < a.pairs_capacity ? a.totals->pairs : a.pairs_capacity;
  int warps = gridDim.x * RESCORE_WARPS, share = (pairs + warps - 1) / warps;
  int begin = (blockIdx.x * RESCORE_WARPS + warp) * share;
  int end = begin + share < pairs ? begin + share : pairs;
  for (int from = 0; from < a.p; from += a.piece) {
    int to = a.p - from < a.piece ? a.p : from + a.piece;
    for (int first = begin; first < end; first += WARP)
      pairs_add(&a, vectors[warp], first, end, from, to);
  }
}
