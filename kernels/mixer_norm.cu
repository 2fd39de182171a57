/* SPDX-License-Identifier: BSD-3-Clause
 * mixer_norm: divides q and k by their norms, if l2 is set, and scales q (N.62); makes decays from
 * their logarithms (N.63).
 *
 * grid    ceil(tokens times mixer_norm_items() / NORM_WARPS)
 * block   NORM_WARPS warps.  Each has a q, a k, or decays: those of one head if by_column,
 *         otherwise of 32 heads
 * sums    the lanes of (N.60) are those of the warp
 *
 * The columns of a head are padded with zeros up to mixer_pitch(d). */
#include "functions.h"
#include "launches.h"
#include "mixer_types.h"
#include "warp.h"

enum { MOST = MAX_MIXER_COLUMNS / MIXER_LANES };

/* The norm of a warp's vector.  Lane l has the numbers of the vector whose index modulo 32 is l. */
static __device__ inline float norm_make(const float x[MOST], int d, float eps)
{
  int lane = threadIdx.x % WARP;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < MOST; i++)
    if (i * WARP + lane < d) sum = __fmaf_rn(x[i], x[i], sum);
#pragma unroll
  for (int step = 1; step < WARP; step *= 2)
    sum = __fadd_rn(sum, __shfl_xor_sync(FULL_WARP, sum, step));
  return __fsqrt_rn(__fadd_rn(sum, eps));
}

static __device__ inline void vector_norm(const struct mixer_norm_args *a, const float *from,
                                          float *to, int is_q)
{
  int lane = threadIdx.x % WARP;
  float x[MOST];
#pragma unroll
  for (int i = 0; i < MOST; i++) x[i] = i * WARP + lane < a->d ? from[i * WARP + lane] : 0;
  float norm = a->l2 ? norm_make(x, a->d, a->eps) : 1;
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    int c = i * WARP + lane;
    float out = a->l2 ? __fdiv_rn(x[i], norm) : x[i];
    if (is_q) out = __fmul_rn(out, a->scale);
    if (c < mixer_pitch(a->d)) to[c] = c < a->d ? out : 0;
  }
}

/* Decays first .. end - 1 of a line, then zeros up to `all`. */
static __device__ inline void decays_make(const float *g, float *to, int first, int end, int all)
{
  for (int i = first + threadIdx.x % WARP; i < all; i += WARP)
    to[i] = i < end ? exp2_any(__fmul_rn(g[i], 0x1.715476p+0f)) : 0;
}

extern "C" __global__ void __launch_bounds__(NORM_WARPS *WARP)
    mixer_norm(const __grid_constant__ struct mixer_norm_args a)
{
  long long warp = (long long)blockIdx.x * NORM_WARPS + threadIdx.x / WARP;
  int items = mixer_norm_items(a.heads_k, a.heads, a.by_column), item = (int)(warp % items);
  long long token = warp / items, pitch = mixer_pitch(a.d);
  launches_wait();
  launch_next();
  if (token >= a.tokens) return;
  if (item < 2 * a.heads_k) {
    int is_q = item < a.heads_k, head = is_q ? item : item - a.heads_k;
    vector_norm(&a, a.y + token * a.channels + (long long)item * a.d,
                (is_q ? a.q : a.k) + (token * a.heads_k + head) * pitch, is_q);
    return;
  }
  item -= 2 * a.heads_k;
  if (a.by_column) {
    long long line = token * a.heads + item;
    decays_make(a.g + line * a.d, a.decay + line * pitch, 0, a.d, (int)pitch);
  } else {
    int first = item * WARP, end = min(first + WARP, a.heads);
    decays_make(a.g + token * a.heads, a.decay + token * a.heads, first, end, end);
  }
}
