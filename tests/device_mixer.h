/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of gated delta nets.  On every device the results must have the bits of the reference. */
#ifndef TESTS_DEVICE_MIXER_H
#define TESTS_DEVICE_MIXER_H

#include "base/num.h"
#include "base/status.h"
#include "device/buffer.h"
#include "device/mixer.h"
#include "gated_delta_data.h"
#include "tap.h"

/* Buffers of a call, on the device. */
struct mixer_buffers {
  struct buffer x, conv, bias, g, beta, s, taps, o;
};

static int mixer_upload(struct device *dev, struct buffer *b, float *values, gidx count)
{
  TRY(buffer_wrap(dev, b, values, imax(count, 1) * (gidx)sizeof *values));
  return device_put(dev, b, 0, b->bytes);
}

static int mixer_buffers_make(struct device *dev, struct delta_data *d, struct mixer_buffers *b)
{
  const struct gated_delta *m = &d->m;
  gidx channels = gated_delta_channels(m), heads = d->tokens * d->c.count;
  TRY(mixer_upload(dev, &b->x, d->x, d->tokens * channels));
  TRY(mixer_upload(dev, &b->conv, d->conv, channels * m->width));
  TRY(mixer_upload(dev, &b->bias, d->bias, channels));
  TRY(mixer_upload(dev, &b->g, d->g, heads * gated_delta_decays(m)));
  TRY(mixer_upload(dev, &b->beta, d->beta, heads));
  TRY(mixer_upload(dev, &b->s, d->s, d->n_s));
  TRY(mixer_upload(dev, &b->taps, d->taps, d->n_taps));
  return mixer_upload(dev, &b->o, d->o, d->n_o);
}

static int mixer_buffers_get(struct device *dev, const struct mixer_buffers *b)
{
  TRY(device_get(dev, &b->s, 0, b->s.bytes));
  TRY(device_get(dev, &b->taps, 0, b->taps.bytes));
  return device_get(dev, &b->o, 0, b->o.bytes);
}

static void mixer_buffers_free(struct device *dev, struct mixer_buffers *b)
{
  struct buffer *all[] = {&b->x, &b->conv, &b->bias, &b->g, &b->beta, &b->s, &b->taps, &b->o};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(dev, all[i]);
}

/* Run the call of d on a device.  d->o, d->s and d->taps <- its results. */
static int mixer_call(struct device *dev, struct delta_data *d, int unfused, gidx *gathered)
{
  struct mixer_buffers b = {0};
  struct mixer w = {0};
  const struct gated_delta_call *c = &d->c;
  const struct mixer_plan plan = {&d->m, c->slots.sequences, c->slots.slots, d->tokens};
  TRY(mixer_buffers_make(dev, d, &b));
  const struct mixer_job job = {.slots = c->slots,
                                .start = c->start,
                                .first = c->first,
                                .count = c->count,
                                .x = &b.x,
                                .g = &b.g,
                                .beta = &b.beta,
                                .conv = d->m.width ? &b.conv : NULL,
                                .conv_bias = c->conv_bias ? &b.bias : NULL,
                                .s = &b.s,
                                .taps = d->m.width ? &b.taps : NULL,
                                .o = &b.o,
                                .unfused = unfused};
  int status = mixer_open(&w, dev, &plan);
  if (!status) status = mixer_run(&w, &job);
  if (!status) status = mixer_buffers_get(dev, &b);
  *gathered = w.gathered;
  mixer_close(&w);
  mixer_buffers_free(dev, &b);
  return status;
}

/* A call.  Before the call, slots that no sequence reads hold NaN. */
struct mixer_case {
  struct gated_delta m;
  idx first, count, n; /* first head; number of heads, 0: all; number of sequences */
  gidx length[8];
  idx slots[16], n_slots; /* for each sequence: the slot that it reads, the slot that it writes */
  int no_bias;            /* 1: the convolution has no bias */
};

static struct delta_data mixer_data(const struct mixer_case *k)
{
  struct gated_delta m = k->m;
  if (k->count) m.heads = k->count; /* for the sizes of arrays that hold only these heads */
  struct delta_data d = delta_make(k->m, k->n, k->length, k->slots, k->n_slots);
  d.c.first = k->first, d.c.count = m.heads;
  d.n_o = d.tokens * m.heads * m.dv;
  d.n_s = (gidx)k->n_slots * m.heads * m.dv * m.d;
  if (k->no_bias) d.c.conv_bias = NULL;
  gidx state = d.n_s / imax(k->n_slots, 1);
  for (idx slot = 0; slot < k->n_slots; slot++) {
    int is_read = 0;
    for (idx i = 0; i < k->n; i++) is_read |= k->slots[2 * i] == slot;
    for (gidx i = 0; i < state && !is_read; i++) d.s[slot * state + i] = NAN;
  }
  return d;
}

/* The index of the first float that differs; -1: none. */
static gidx mixer_float_apart(const float *got, const float *want, gidx n)
{
  for (gidx i = 0; i < n; i++)
    if (memcmp(got + i, want + i, sizeof *got) != 0) return i;
  return -1;
}

/* A text about the first number that differs from the reference; "": none. */
static const char *mixer_apart(const struct delta_data *got, const struct delta_data *want)
{
  static char text[160];
  const struct {
    const char *name;
    const float *got, *want;
    gidx n;
  } all[] = {{"rows", got->o, want->o, want->n_o},
             {"states", got->s, want->s, want->n_s},
             {"taps", got->taps, want->taps, want->n_taps}};
  *text = 0;
  for (int i = 0; i < LENGTH(all) && !*text; i++) {
    gidx at = mixer_float_apart(all[i].got, all[i].want, all[i].n);
    if (at >= 0)
      snprintf(text, sizeof text, "%s: number %lld of %lld is %a, not %a", all[i].name,
               (long long)at, (long long)all[i].n, (double)all[i].got[at], (double)all[i].want[at]);
  }
  return text;
}

/* The number of sequences that read a slot which another sequence writes. */
static gidx mixer_gathered(const struct delta_slots *s)
{
  gidx count = 0;
  for (idx i = 0; i < s->sequences; i++) {
    int is_gathered = 0;
    for (idx j = 0; j < s->sequences; j++)
      if (j != i && s->in[i] >= 0 && s->out[j] == s->in[i]) is_gathered = 1;
    count += is_gathered;
  }
  return count;
}

static void mixer_try(struct device *dev, const struct mixer_case *k)
{
  struct delta_data want = mixer_data(k);
  ok(gated_delta_run(&k->m, &want.c) == OK, "%s", status_message());
  for (int unfused = 0; unfused < 2; unfused++) {
    struct delta_data got = mixer_data(k);
    gidx gathered = -1;
    int status = mixer_call(dev, &got, unfused, &gathered);
    const char *apart = mixer_apart(&got, &want);
    ok(status == OK && !*apart && gathered == mixer_gathered(&want.c.slots),
       "%d and %d heads of %d and %d, heads from %d, width %d, %s%s%s, %d sequences, the first of "
       "%lld tokens, slots %d %d ..%s: %s",
       k->m.heads_k, k->m.heads, k->m.d, k->m.dv, k->first, k->m.width,
       k->m.by_column ? "by column" : "by head", k->m.tiled ? ", tiled" : "",
       k->m.silu ? ", silu" : "", k->n, (long long)k->length[0], k->slots[0], k->slots[1],
       unfused ? ", unfused" : "", status ? status_message() : apart);
    status_clear();
    delta_free(&got);
  }
  delta_free(&want);
}

/* Numbers of columns that are whole warps, whole vectors, or neither; all heads, or some. */
static void mixer_shapes(struct device *dev, int less)
{
  static const idx widths[] = {8, 16, 32, 64, 128, 256, 1, 5, 33, 100};
  for (int w = 0; w < LENGTH(widths) - 2 * less; w++)
    for (int form = 0; form < 8; form++) {
      idx d = widths[w], conv = form % 4 ? 2 + (w + form) % 7 : 0;
      struct mixer_case k = {.m = {.heads_k = 2,
                                   .heads = form & 4 ? 2 : 6,
                                   .d = d,
                                   .dv = d,
                                   .width = conv,
                                   .silu = form % 2,
                                   .tiled = form & 1,
                                   .by_column = form & 2,
                                   .l2 = form != 7,
                                   .eps = 1e-6f,
                                   .scale = 1 / sqrtf((float)d)},
                             .n = 3,
                             .length = {form == 3 && d <= 64 ? 64
                                        : d <= 128           ? 7
                                                             : 3,
                                        1, 0},
                             .slots = {0, 2, 1, 1, 3, 0},
                             .n_slots = 5,
                             .no_bias = form == 5};
      if (form > 5) k.m.dv = widths[(w + 3) % LENGTH(widths)];
      if (form == 1) k.first = 1, k.count = 4;
      mixer_try(dev, &k);
    }
}

/* Many ways in which sequences read and write slots: the same slot, slots that others read or
 * write, no slot (-1). */
static void mixer_slots(struct device *dev)
{
  static const idx slots[][16] = {
      {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13},
      {0, 0, 1, 3, -1, 1, 2, -1, -1, -1, 9, 12},        {0, 1, 1, 0, -1, 2, -1, 3, 4, 4, 5, 6},
      {0, 1, 1, 2, 2, 0, -1, 3, -1, 4, -1, 5},          {1, 2, 2, 3, -1, 4, -1, 5, -1, 6, -1, 7},
      {3, 3, 3, 5, 3, 6, -1, 7, -1, 8, -1, 9},          {3, 5, 3, 6, 6, 3, -1, 7, -1, 8, -1, 9}};
  for (int i = 0; i < LENGTH(slots); i++)
    for (int wide = 0; wide < 2; wide++) {
      struct mixer_case k = {.m = {.heads_k = 1,
                                   .heads = 2,
                                   .d = wide ? 64 : 5,
                                   .dv = wide ? 32 : 3,
                                   .width = 4,
                                   .silu = 1,
                                   .l2 = 1,
                                   .eps = 1e-6f,
                                   .scale = 0.5f,
                                   .by_column = wide},
                             .n = 6 + 2 * !i,
                             .length = {3, 1, 9, 0, 2, 1, 1, 5},
                             .n_slots = 14};
      memcpy(k.slots, slots[i], sizeof k.slots);
      mixer_try(dev, &k);
    }
}

/* Values for which exponentials overflow or underflow, tiny values, and a sum of squares of 0. */
static void mixer_extremes(struct device *dev)
{
  struct mixer_case k = {.m = {.heads_k = 1,
                               .heads = 1,
                               .d = 40,
                               .dv = 3,
                               .width = 2,
                               .silu = 1,
                               .l2 = 1,
                               .eps = 1e-6f,
                               .scale = 0.125f,
                               .by_column = 1},
                         .n = 1,
                         .length = {4},
                         .slots = {0, 0},
                         .n_slots = 1};
  struct delta_data want = mixer_data(&k), got = mixer_data(&k);
  gidx gathered, channels = gated_delta_channels(&k.m);
  for (struct delta_data *d = &want; d; d = d == &want ? &got : NULL) {
    for (gidx c = 0; c < channels; c++) d->x[c] = 0, d->x[channels + c] *= c % 2 ? 300 : -300;
    for (gidx c = 0; c < channels; c++) d->x[2 * channels + c] *= 1e-30f;
    for (gidx c = 0; c < 3 * 40; c++) d->g[c] = c % 3 ? -1e4f : -(float)c;
    for (gidx c = 0; c < 40; c++) d->s[c] = c % 2 ? -1e-38f : 1e-42f;
  }
  ok(gated_delta_run(&k.m, &want.c) == OK && mixer_call(dev, &got, 0, &gathered) == OK, "%s",
     status_message());
  ok(!memcmp(got.o, want.o, (size_t)want.n_o * 4) && !memcmp(got.s, want.s, (size_t)want.n_s * 4),
     "values where exponentials end, and tiny ones");
  delta_free(&want);
  delta_free(&got);
}

#endif
