/* SPDX-License-Identifier: BSD-3-Clause
 * mixer_rows: x through the convolution and the activation (N.61), q and k divided by their norms,
 * q scaled (N.62), decays of their logarithms (N.63), and the last values of x to taps.
 *
 * grid    ceil(parts times mixer_rows_items() / ROWS_WARPS)
 * block   ROWS_WARPS warps, each tokens of a part: a q, a k, LINE channels of v, or decays, by
 *         column those of a head, else of 32 heads
 * sums    a convolution is a chain, the oldest tap first; the lanes of (N.60) are those of the warp
 *
 * -D HEAD_D, TAPS: of the net; TOGETHER: tokens whose values are read before the first is computed
 *
 * The first part of a sequence reads its taps and writes the new ones: they may be the same.
 * Behind the columns of a head come zeros up to mixer_pitch(d). */
#include "functions.h"
#include "launches.h"
#include "mixer_types.h"
#include "warp.h"

enum {
  PIECES = mixer_pieces(HEAD_D),
  LINE = PIECES * MIXER_LANES,
  PITCH = mixer_pitch(HEAD_D),
  BACK = TAPS ? TAPS - 1 : 0 /* tokens */
};

/* What a warp works on. */
struct item {
  const struct mixer_rows_args *a;
  struct mixer_sequence sequence;
  int first, end;     /* tokens of the sequence */
  int channel, count; /* of x */
  float *to;          /* where the sequence's first token has these channels */
  long long row;      /* to the next token's */
};

static __device__ inline float decay_make(float g)
{
  return exp2_any(__fmul_rn(g, 0x1.715476p+0f));
}

static __device__ inline int channel_of(int piece)
{
  return piece * WARP + (int)threadIdx.x % WARP;
}

/* x of token t, which may be one of the taps. */
static __device__ inline float value_at(const struct item *w, const float *taps, int channel, int t)
{
  const struct mixer_rows_args *a = w->a;
  if (t >= 0) return a->x[(w->sequence.token + t) * a->channels + channel];
  return taps ? taps[(long long)channel * BACK + BACK + t] : 0;
}

static __device__ inline const float *taps_of(const struct item *w)
{
  const struct mixer_sequence *s = &w->sequence;
  if (s->in < 0) return 0;
  return (s->is_gathered ? w->a->scratch : w->a->pool) + (long long)s->in * w->a->channels * BACK;
}

/* Channels of a warp: weights, the oldest first, and values of which the first BACK are those
 * before the tokens that are computed together. */
struct channels {
  float bias[PIECES], weight[PIECES][TAPS + 1], window[PIECES][BACK + TOGETHER];
};

static __device__ inline void channels_begin(const struct item *w, struct channels *c)
{
  const struct mixer_rows_args *a = w->a;
  const float *taps = TAPS ? taps_of(w) : 0;
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    int is = channel_of(p) < w->count, channel = w->channel + channel_of(p);
    c->bias[p] = TAPS && is && a->bias ? a->bias[channel] : 0;
#pragma unroll
    for (int i = 0; i < TAPS; i++)
      c->weight[p][i] = is ? a->weight[(long long)channel * TAPS + i] : 0;
#pragma unroll
    for (int i = 0; i < BACK; i++)
      c->window[p][i] = is ? value_at(w, taps, channel, w->first - BACK + i) : 0;
  }
}

/* Taps <- the last values of a sequence, in its first part; where it has one token at most, they
 * are in the window.  All are read before one is written. */
static __device__ inline void taps_move(const struct item *w, const struct channels *c)
{
  const struct mixer_sequence *s = &w->sequence;
  const float *taps = taps_of(w);
  float *out = w->a->out + ((long long)s->out * w->a->channels + w->channel) * BACK;
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    float next[BACK + 1];
    if (channel_of(p) >= w->count) continue;
#pragma unroll
    for (int i = 0; i < BACK; i++)
      if (TOGETHER == 1)
        next[i] = s->tokens ? c->window[p][i + 1] : c->window[p][i];
      else
        next[i] = value_at(w, taps, w->channel + channel_of(p), s->tokens - BACK + i);
#pragma unroll
    for (int i = 0; i < BACK; i++) out[channel_of(p) * BACK + i] = next[i];
  }
}

static __device__ inline void values_read(const struct item *w, struct channels *c, int t)
{
  const float *x = w->a->x + (w->sequence.token + t) * w->a->channels + w->channel;
#pragma unroll
  for (int i = 0; i < TOGETHER; i++)
#pragma unroll
    for (int p = 0; p < PIECES; p++)
      c->window[p][BACK + i] = t + i < w->end && channel_of(p) < w->count
                                   ? x[(long long)i * w->a->channels + channel_of(p)]
                                   : 0;
}

/* Token i of those that were read. */
static __device__ inline void token_make(const struct item *w, const struct channels *c, int i,
                                         float y[PIECES])
{
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    y[p] = TAPS ? c->bias[p] : c->window[p][i];
#pragma unroll
    for (int k = 0; k < TAPS; k++) y[p] = __fmaf_rn(c->window[p][i + k], c->weight[p][k], y[p]);
    if (TAPS && w->a->silu) y[p] = __fdiv_rn(y[p], __fadd_rn(1, decay_make(-y[p])));
  }
}

/* Columns beyond the last are zeros. */
static __device__ inline void vector_norm(const struct item *w, float x[PIECES], int is_q)
{
  const struct mixer_rows_args *a = w->a;
  float sum = 0;
#pragma unroll
  for (int p = 0; p < PIECES; p++)
    if (channel_of(p) < HEAD_D) sum = __fmaf_rn(x[p], x[p], sum);
#pragma unroll
  for (int step = 1; step < WARP; step *= 2)
    sum = __fadd_rn(sum, __shfl_xor_sync(FULL_WARP, sum, step));
  float norm = __fsqrt_rn(__fadd_rn(sum, a->eps));
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    if (a->l2) x[p] = __fdiv_rn(x[p], norm);
    if (is_q) x[p] = __fmul_rn(x[p], a->scale);
    if (channel_of(p) >= HEAD_D) x[p] = 0;
  }
}

/* Tokens of a part: q or k of a head, or channels of v; so many floats are written. */
enum { IS_Q, IS_K, IS_V };
static __device__ inline void channels_run(const struct item *w, int kind, int wide)
{
  struct channels c;
  channels_begin(w, &c);
  values_read(w, &c, w->first);
  if (TAPS && w->first == 0 && w->sequence.out >= 0) taps_move(w, &c);
#pragma unroll 1
  for (int t = w->first; t < w->end; t += TOGETHER) {
    if (t > w->first) values_read(w, &c, t);
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
      float y[PIECES], *to = w->to + (t + i) * w->row;
      token_make(w, &c, i, y);
      if (kind != IS_V) vector_norm(w, y, kind == IS_Q);
#pragma unroll
      for (int p = 0; p < PIECES; p++)
        if (t + i < w->end && channel_of(p) < wide) to[channel_of(p)] = y[p];
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
      for (int i = 0; i < BACK; i++) c.window[p][i] = c.window[p][i + TOGETHER];
  }
}

static __device__ inline void decays_run(const struct item *w, int item)
{
  const struct mixer_rows_args *a = w->a;
  int lane = (int)threadIdx.x % WARP, head = a->by_column ? item : item * WARP + lane;
  for (int t = w->first; t < w->end; t++) {
    long long line = (w->sequence.token + t) * a->heads + head;
    if (!a->by_column) {
      if (head < a->heads) a->decay[line] = decay_make(a->g[line]);
      continue;
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
      int c = channel_of(p);
      if (c < PITCH)
        a->decay[line * PITCH + c] = c < HEAD_D ? decay_make(a->g[line * HEAD_D + c]) : 0;
    }
  }
}

extern "C" __global__ void __launch_bounds__(ROWS_WARPS *WARP,
                                             mixer_rows_resident(HEAD_D, TAPS, TOGETHER))
    mixer_rows(const __grid_constant__ struct mixer_rows_args a)
{
  long long warp = (long long)blockIdx.x * ROWS_WARPS + threadIdx.x / WARP;
  int items = mixer_rows_items(HEAD_D, TAPS, a.heads_k, a.values, a.heads, a.by_column);
  int item = (int)(warp % items), n = warp / items < a.n_parts ? (int)(warp / items) : 0;
  const struct mixer_part part = a.parts[n];
  struct item w = {&a, a.sequences[part.sequence], part.first};
  w.end = min(part.first + (int)ROWS_TOKENS, w.sequence.tokens);
  launches_wait();
  launch_next();
  if (warp / items >= a.n_parts) return;
  int keys = 2 * a.heads_k;
  if (item < keys) {
    int is_q = item < a.heads_k, head = is_q ? item : item - a.heads_k;
    w.channel = item * HEAD_D, w.count = HEAD_D, w.row = (long long)a.heads_k * PITCH;
    w.to = (is_q ? a.q : a.k) + w.sequence.token * w.row + head * PITCH;
    channels_run(&w, is_q ? IS_Q : IS_K, PITCH);
    return;
  }
  item -= keys;
  int lines = TAPS ? (a.values + LINE - 1) / LINE : 0;
  if (item < lines) {
    int first = item * LINE;
    w.channel = keys * HEAD_D + first, w.count = min((int)LINE, a.values - first);
    w.row = a.values, w.to = a.v + w.sequence.token * w.row + first;
    channels_run(&w, IS_V, w.count);
  } else
    decays_run(&w, item - lines);
}
