/* SPDX-License-Identifier: BSD-3-Clause
 * mixer_conv: convolution and activation of x (N.61).  The new taps are the last values of
 * the old taps and x together.
 *
 * grid    parts times ceil(channels / CONV_THREADS)
 * block   CONV_THREADS, one channel each
 * sums    a chain, the oldest tap first
 * Old and new taps may be the same memory.  So the first part of a sequence, which is the only one
 * to read the old taps, also writes the new ones. */
#include "functions.h"
#include "launches.h"
#include "mixer_types.h"

enum { MOST = 8 /* DELTA_TAPS of model/gated_delta.h */ };

/* A thread's channel.  window[MOST - width + 1] .. [MOST - 1] are the values before the next token,
 * the oldest first; weights are at the end of weight[], after zeros. */
struct channel {
  float window[MOST], weight[MOST], bias;
};

static __device__ inline float value_make(const struct mixer_conv_args *a, struct channel *c,
                                          float x)
{
  float y = c->bias;
#pragma unroll
  for (int i = 0; i + 1 < MOST; i++) c->window[i] = c->window[i + 1];
  c->window[MOST - 1] = x;
#pragma unroll
  for (int i = 0; i < MOST; i++)
    if (i >= MOST - a->width) y = __fmaf_rn(c->window[i], c->weight[i], y);
  if (!a->silu) return y;
  float power = exp2_any(__fmul_rn(-y, 0x1.715476p+0f));
  return __fdiv_rn(y, __fadd_rn(1, power));
}

/* The value of token t; if t < 0, a tap. */
static __device__ inline float value_at(const struct mixer_conv_args *a, const float *x,
                                        const float *taps, int t)
{
  return t >= 0 ? x[(long long)t * a->channels] : taps ? taps[a->width - 1 + t] : 0;
}

extern "C" __global__ void __launch_bounds__(CONV_THREADS)
    mixer_conv(const __grid_constant__ struct mixer_conv_args a)
{
  int c = blockIdx.x % a.blocks * CONV_THREADS + threadIdx.x;
  launches_wait();
  launch_next();
  if (c >= a.channels) return;
  const struct mixer_part part = a.parts[blockIdx.x / a.blocks];
  const struct mixer_sequence s = a.sequences[part.sequence];
  const float *x = a.x + s.token * a.channels + c;
  float *y = a.y + s.token * a.channels + c;
  long long channels = a.channels, last = a.width - 1;
  const float *taps =
      s.in < 0 ? 0 : (s.is_gathered ? a.scratch : a.pool) + (s.in * channels + c) * last;
  struct channel here = {{0}, {0}, a.bias ? a.bias[c] : 0};
#pragma unroll
  for (int i = 0; i < MOST; i++)
    if (i >= MOST - a.width) {
      int back = i - (MOST - 1); /* negative: tokens before the first one */
      here.weight[i] = a.weight[(long long)c * a.width + i - (MOST - a.width)];
      if (back < 0) here.window[i + 1] = value_at(&a, x, taps, part.first + back);
    }
  if (part.first == 0 && s.out >= 0) {
    float next[MOST], *out = a.out + (s.out * channels + c) * last;
#pragma unroll
    for (int i = 0; i + 1 < MOST; i++)
      if (i < last) next[i] = value_at(&a, x, taps, s.tokens - (int)last + i);
#pragma unroll
    for (int i = 0; i + 1 < MOST; i++)
      if (i < last) out[i] = next[i];
  }
  int end = min(part.first + CONV_TOKENS, s.tokens);
#pragma unroll 1
  for (int t = part.first; t < end; t += CONV_TOGETHER) {
    float values[CONV_TOGETHER];
#pragma unroll
    for (int i = 0; i < CONV_TOGETHER; i++) values[i] = t + i < end ? x[(t + i) * channels] : 0;
#pragma unroll
    for (int i = 0; i < CONV_TOGETHER; i++)
      if (t + i < end) y[(t + i) * channels] = value_make(&a, &here, values[i]);
  }
}
