/* SPDX-License-Identifier: BSD-3-Clause
 * rescore: computes the exact score (N.1), its positive part, or the gate of every pair that
 * prune.cu left.
 *
 * A launch adds the terms of columns first_column to end_column - 1, and keeps sums in `values`
 * between launches.  So the pieces of all vectors that pairs share stay in the second-level cache.
 * Frames, whose gates need whole scores, take all columns in one launch.
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
  int at, row, slot; /* index of the pair; its row and slot, -1: none */
  float (*vectors)[WARP * PITCH];
};

/* Begin to copy columns column .. column + 31 of the lanes' vectors: 8 lanes copy 128 bytes of
 * each. */
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

/* z <- z + products of the columns of a piece that has been copied. */
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

/* z <- z + products of all columns of the launch. */
static __device__ inline float score_add(const struct screen_args *a, const struct work *w,
                                         int vector, float z)
{
  columns_order(a, w, vector, a->first_column);
  for (int column = a->first_column; column < a->end_column; column += DEPTH) {
    if (column + DEPTH < a->end_column)
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

extern "C" __global__ void __launch_bounds__(RESCORE_WARPS *WARP)
    rescore(const __grid_constant__ struct screen_args a)
{
  __shared__ __align__(16) float vectors[RESCORE_WARPS][2][WARP * PITCH];
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int pairs = a.totals->pairs < a.pairs_capacity ? a.totals->pairs : a.pairs_capacity;
  int warps = gridDim.x * RESCORE_WARPS, share = (pairs + warps - 1) / warps;
  int begin = (blockIdx.x * RESCORE_WARPS + warp) * share;
  int end = begin + share < pairs ? begin + share : pairs;
  for (int first = begin; first < end; first += WARP) {
    struct screen_pair none = {-1, 0}, pair = first + lane < end ? a.pairs[first + lane] : none;
    struct work w = {first + lane, pair.row, pair.row < 0 ? -1 : pair.slot, vectors[warp]};
    float value = pair.row >= 0 && a.first_column ? a.values[w.at] : 0;
    for (int m = 0; m < a.d; m++) {
      float z = score_add(&a, &w, m, a.d == 1 ? value : 0);
      value = a.d == 1 ? z : m == 0 ? __fmul_rn(z, z) : __fadd_rn(value, __fmul_rn(z, z));
    }
    /* All values of certified rows are finite. */
    if (a.positive && a.end_column == a.p && !(value > 0)) value = 0;
    if (pair.row >= 0) a.values[w.at] = value;
  }
}
