/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of gated delta nets for any vector width: convolution, norm, exponentials, steps.
 *
 * Floor: device.  A unit (isa.h) includes this after attention_body.h, which has the
 * exponential. */
#include <string.h>

#include "device/cpu/mixer_loops.h"

static const float MIXER_LOG2_E = 0x1.715476p+0f;

/* A vector of the next floats.  Only `left` of them exist; the others are 0. */
ALWAYS_INLINE f32v mixer_load(const float *from, gidx left)
{
  f32v v = {0};
  if (left >= F32_LANES) return f32_load(from);
  for (idx i = 0; i < left; i++) v[i] = from[i];
  return v;
}

ALWAYS_INLINE void mixer_store(float *to, gidx left, f32v v)
{
  if (left >= F32_LANES)
    f32_store(to, v);
  else
    for (idx i = 0; i < left; i++) to[i] = v[i];
}

static void mixer_conv(const struct mixer_channels *c)
{
  for (gidx i = 0; i < c->channels; i += F32_LANES) {
    gidx left = c->channels - i;
    f32v y = {0};
    if (c->bias) y = mixer_load(c->bias + i, left);
    for (idx w = 0; w < c->width; w++)
      y = f32_fma(mixer_load(c->x[w] + i, left), mixer_load(c->weights + w * c->channels + i, left),
                  y);
    if (c->silu) y = y / (1 + f32_exp2(-y * f32_splat(MIXER_LOG2_E)));
    mixer_store(c->y + i, left, y);
  }
}

static void mixer_norm(idx d, float eps, float *x)
{
  _Alignas(64) float lane[DELTA_LANES] = {0};
  for (idx i = 0; i < d; i += F32_LANES) {
    f32v v = mixer_load(x + i, d - i);
    float *l = lane + i % DELTA_LANES;
    mixer_store(l, d - i, f32_fma(v, v, f32_load(l)));
  }
  for (int step = 1; step < DELTA_LANES; step *= 2)
    for (int i = 0; i < DELTA_LANES; i += 2 * step) lane[i] += lane[i + step];
  f32v size = f32_sqrt(f32_splat(lane[0] + eps));
  for (idx i = 0; i < d; i += F32_LANES) mixer_store(x + i, d - i, mixer_load(x + i, d - i) / size);
}

static void mixer_decays(gidx count, const float *g, float *out)
{
  for (gidx i = 0; i < count; i += F32_LANES)
    mixer_store(out + i, count - i,
                f32_exp2(mixer_load(g + i, count - i) * f32_splat(MIXER_LOG2_E)));
}

/* `sum` is the sum of lane l of (N.60).  Add to it the sums of earlier lanes that the tree joins
 * with it: of one lane, of two, of four and so on.  part[level] <- the total. */
ALWAYS_INLINE void mixer_lane_add(f32v *part, int l, f32v sum)
{
  int level = __builtin_ctz(~(unsigned)l);
#pragma GCC unroll 8
  for (int i = 0; i < level; i++) sum = part[i] + sum;
  part[level] = sum;
}

/* s <- s times the decays; returns the inner products of s and k. */
ALWAYS_INLINE f32v mixer_decay(const struct mixer_columns *c, const float *k, const float *decay,
                               float *s)
{
  f32v part[6], one = f32_splat(decay[0]);
#pragma GCC unroll 32
  for (int l = 0; l < DELTA_LANES; l++) {
    f32v sum = {0};
    for (idx i = l; i < c->d; i += DELTA_LANES) {
      f32v by = c->by_column ? f32_splat(decay[i]) : one;
      f32v value = f32_load(s + (gidx)i * MIXER_COLUMNS) * by;
      f32_store(s + (gidx)i * MIXER_COLUMNS, value);
      sum = f32_fma(value, f32_splat(k[i]), sum);
    }
    mixer_lane_add(part, l, sum);
  }
  return part[5];
}

/* s <- s + k delta; returns the inner products of s and q. */
ALWAYS_INLINE f32v mixer_update(const struct mixer_columns *c, const float *k, const float *q,
                                f32v delta, float *s)
{
  f32v part[6];
#pragma GCC unroll 32
  for (int l = 0; l < DELTA_LANES; l++) {
    f32v sum = {0};
    for (idx i = l; i < c->d; i += DELTA_LANES) {
      f32v value = f32_fma(f32_splat(k[i]), delta, f32_load(s + (gidx)i * MIXER_COLUMNS));
      f32_store(s + (gidx)i * MIXER_COLUMNS, value);
      sum = f32_fma(value, f32_splat(q[i]), sum);
    }
    mixer_lane_add(part, l, sum);
  }
  return part[5];
}

static void mixer_steps(const struct mixer_columns *c)
{
  for (idx x = 0; x < c->columns; x += F32_LANES)
    for (gidx t = 0; t < c->tokens; t++) {
      const float *k = c->k + t * c->row, *q = c->q + t * c->row;
      f32v v = mixer_load(c->v + t * c->row + x, c->columns - x);
      f32v seen = mixer_decay(c, k, c->decay + t * c->decay_row, c->s + x);
      f32v delta = f32_splat(c->beta[t * c->beta_row]) * (v - seen);
      mixer_store(c->o + t * c->o_row + x, c->columns - x, mixer_update(c, k, q, delta, c->s + x));
    }
}

static const struct mixer_loops mixer_table = {mixer_conv, mixer_norm, mixer_decays, mixer_steps};
