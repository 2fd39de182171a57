/* SPDX-License-Identifier: BSD-3-Clause
 * rescore: computes the exact score (N.1), its positive part or the gate of every pair that
 * prune.cu left.
 *
 * grid    any number of blocks of RESCORE_WARPS warps; a warp takes 32 pairs at a time, a lane
 *         one of them
 * shared  static: 32 columns of 32 vectors a warp, twice
 * sums    columns ascending from +0, two roundings a term; gates: vectors ascending */
#include "async_copy.h"
#include "screen_types.h"
#include "warp.h"

enum { DEPTH = 32, PITCH = DEPTH + 4 /* floats, without bank conflicts */ };

/* A warp's pairs. */
struct work {
  int at, row, slot; /* of the lane; row -1: none */
  float (*vectors)[WARP * PITCH];
};

/* Order columns column .. column + 31 of the lanes' vectors: 8 lanes copy 128 bytes of each. */
static __device__ inline void columns_order(const struct screen_args *a, const struct work *w,
                                            int vector, int column)
{
  int lane = threadIdx.x % WARP, c = column + lane % 8 * 4;
#pragma unroll
  for (int i = 0; i < WARP; i += 4) {
    int pair = i + lane / 8, slot = __shfl_sync(FULL_WARP, w->slot, pair);
    const float *from = a->frames + ((long long)slot * a->d + vector) * a->pitch + c;
    float *to = w->vectors[column / DEPTH % 2] + pair * PITCH + lane % 8 * 4;
    if (c < a->pitch) async_copy16(to, from);
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

/* z <- z + products of the columns of a piece that has come. */
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

static __device__ inline float pair_score(const struct screen_args *a, const struct work *w,
                                          int vector)
{
  float z = 0;
  columns_order(a, w, vector, 0);
  for (int column = 0; column < a->p; column += DEPTH) {
    if (column + DEPTH < a->p)
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
  for (int first = (blockIdx.x * RESCORE_WARPS + warp) * WARP; first < pairs;
       first += gridDim.x * RESCORE_WARPS * WARP) {
    struct screen_pair none = {-1, 0}, pair = first + lane < pairs ? a.pairs[first + lane] : none;
    struct work w = {first + lane, pair.row, pair.slot, vectors[warp]};
    float value = 0;
    for (int m = 0; m < a.d; m++) {
      float z = pair_score(&a, &w, m);
      value = a.d == 1 ? z : m == 0 ? __fmul_rn(z, z) : __fadd_rn(value, __fmul_rn(z, z));
    }
    if (a.positive && !(value > 0)) value = 0; /* of certified rows all values are finite */
    if (pair.row >= 0) a.values[w.at] = value;
  }
}
