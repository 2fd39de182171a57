/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of gated delta nets, drawn at random, for tests of the model and of devices. */
#ifndef TESTS_GATED_DELTA_DATA_H
#define TESTS_GATED_DELTA_DATA_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/gated_delta.h"

/* A call, and the arrays that it points to; owned. */
struct delta_data {
  struct gated_delta m;
  struct gated_delta_call c;
  gidx *start;
  idx *in, *out;
  float *x, *conv, *bias, *g, *beta, *s, *taps, *o;
  gidx tokens, n_s, n_taps, n_o;
};

static float *delta_floats(gidx count, uint64_t stream, float size)
{
  float *out = malloc((size_t)(count + 1) * sizeof *out);
  for (gidx i = 0; i < count; i++) out[i] = size * (float)random_normal(7, stream, (uint64_t)i);
  return out;
}

/* A call of all heads for n sequences with these lengths.  slots[n][2]: the slot that each sequence
 * reads, and the slot that it writes. */
static struct delta_data delta_make(struct gated_delta m, idx n, const gidx *length,
                                    const idx *slots, idx n_slots)
{
  struct delta_data t = {.m = m};
  t.start = calloc((size_t)n + 1, sizeof *t.start);
  t.in = calloc((size_t)n + 1, sizeof *t.in);
  t.out = calloc((size_t)n + 1, sizeof *t.out);
  for (idx i = 0; i < n; i++) {
    t.start[i + 1] = t.start[i] + length[i];
    t.in[i] = slots[2 * i];
    t.out[i] = slots[2 * i + 1];
  }
  gidx channels = gated_delta_channels(&m), decays = m.heads * (gidx)gated_delta_decays(&m);
  gidx taps = m.width ? m.width - 1 : 0;
  t.tokens = t.start[n];
  t.n_s = n_slots * (gidx)m.heads * m.dv * m.d;
  t.n_taps = n_slots * channels * taps;
  t.n_o = t.tokens * m.heads * m.dv;
  t.x = delta_floats(t.tokens * channels, 1, 1);
  t.conv = delta_floats(channels * m.width, 2, 0.5f);
  t.bias = delta_floats(channels, 3, 0.25f);
  t.g = delta_floats(t.tokens * decays, 4, 1);
  t.beta = delta_floats(t.tokens * m.heads, 5, 1);
  t.s = delta_floats(t.n_s, 6, 0.5f);
  t.taps = delta_floats(t.n_taps, 7, 1);
  t.o = calloc((size_t)t.n_o + 1, sizeof *t.o);
  for (gidx i = 0; i < t.tokens * decays; i++) t.g[i] = -fabsf(t.g[i]) / 4;
  for (gidx i = 0; i < t.tokens * m.heads; i++) t.beta[i] = 1 / (1 + t.beta[i] * t.beta[i]);
  t.c = (struct gated_delta_call){.slots = {n, n_slots, t.in, t.out},
                                  .count = m.heads,
                                  .start = t.start,
                                  .x = t.x,
                                  .conv = m.width ? t.conv : NULL,
                                  .conv_bias = m.width ? t.bias : NULL,
                                  .g = t.g,
                                  .beta = t.beta,
                                  .s = t.s,
                                  .taps = t.taps,
                                  .o = t.o};
  return t;
}

static void delta_free(struct delta_data *t)
{
  void *all[] = {t->start, t->in,   t->out, t->x,    t->conv, t->bias,
                 t->g,     t->beta, t->s,   t->taps, t->o};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

#endif
