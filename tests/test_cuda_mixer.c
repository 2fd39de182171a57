/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: gated delta nets on a GPU have the bits of their reference, for all shapes, numbers of
 * heads that share a key head, decays and convolutions; for states that stay in their slots, move,
 * are swapped or shared; with fused kernels or not; for any division of tokens into calls; and for
 * calls of one mixer or of many. */
#include "device_how.h"
#include "device_mixer.h"

static struct gated_delta net_of(idx heads_k, idx heads, idx d, idx dv)
{
  return (struct gated_delta){.heads_k = heads_k,
                              .heads = heads,
                              .d = d,
                              .dv = dv,
                              .width = 4,
                              .silu = 1,
                              .l2 = 1,
                              .eps = 1e-6f,
                              .scale = (float)(1 / sqrt(d))};
}

/* Sequences of several lengths, all heads or some, and convolutions of each width. */
static void lengths_check(struct device *dev)
{
  static const idx widths[][2] = {{128, 128}, {16, 24}, {127, 130}, {256, 5}, {17, 256}, {36, 64}};
  for (int w = 0; w < LENGTH(widths); w++)
    for (int l = 0; l < 4; l++) {
      if (is_small() && (w + l) % 4) continue;
      struct mixer_case k = {.m = net_of(2, 4, widths[w][0], widths[w][1]),
                             .n = 4,
                             .length = {l ? 63 + l : 1, 1, l ? 150 : 0, l},
                             .slots = {0, 3, 3, 0, 1, 1, -1, 5},
                             .n_slots = 6,
                             .no_bias = l == 3};
      k.m.width = (w + 2 * l) % 8 + 1;
      if (k.m.width == 1) k.m.width = 0;
      k.m.by_column = (w + l / 2) % 2;
      k.m.tiled = l % 2;
      k.m.silu = l != 2;
      if (l == 1) k.first = 1, k.count = 2;
      mixer_try(dev, &k);
    }
}

/* With so many heads a thread takes more than one column of v. */
static void many_check(struct device *dev)
{
  for (int heads = 64; heads <= 256 && !is_small(); heads *= 2)
    for (int by_column = 0; by_column < 2; by_column++) {
      struct mixer_case k = {.m = net_of(16, heads, heads == 128 ? 64 : 128, 128),
                             .n = 8,
                             .length = {8, 9, 17, 11, 8, 8, 7, 12},
                             .slots = {0, 3, 3, 0, 1, 1, 2, 5, -1, 2, 6, 6, -1, 4, 7, -1},
                             .n_slots = 8};
      k.m.by_column = by_column;
      mixer_try(dev, &k);
    }
}

/* `count` tokens of a sequence from token `at` on, with its state and taps. */
static struct delta_data part_make(const struct delta_data *all, gidx at, gidx count)
{
  static const idx slots[] = {0, 0};
  struct delta_data t = delta_make(all->m, 1, &count, slots, 1);
  gidx channels = gated_delta_channels(&t.m), decays = gated_delta_decays(&t.m) * t.m.heads;
  memcpy(t.x, all->x + at * channels, (size_t)(count * channels) * sizeof *t.x);
  memcpy(t.g, all->g + at * decays, (size_t)(count * decays) * sizeof *t.g);
  memcpy(t.beta, all->beta + at * t.m.heads, (size_t)(count * t.m.heads) * sizeof *t.beta);
  memcpy(t.s, all->s, (size_t)t.n_s * sizeof *t.s);
  memcpy(t.taps, all->taps, (size_t)t.n_taps * sizeof *t.taps);
  return t;
}

static int cut_run(struct device *dev, struct delta_data *d, gidx cut)
{
  gidx gathered, heads = d->m.heads;
  int status = OK;
  for (gidx at = 0; at < d->tokens && !status; at += cut) {
    struct delta_data t = part_make(d, at, imin(cut, d->tokens - at));
    status = mixer_call(dev, &t, 0, &gathered);
    memcpy(d->o + at * heads * d->m.dv, t.o, (size_t)t.n_o * sizeof *t.o);
    memcpy(d->s, t.s, (size_t)t.n_s * sizeof *t.s);
    memcpy(d->taps, t.taps, (size_t)t.n_taps * sizeof *t.taps);
    delta_free(&t);
  }
  return status;
}

static void cuts_check(struct device *dev)
{
  static const idx slots[] = {0, 0};
  static const gidx cuts[] = {1, 5, 63};
  gidx n = is_small() ? 9 : 64;
  struct gated_delta m = net_of(1, 2, 64, 64);
  struct delta_data want = delta_make(m, 1, &n, slots, 1);
  int good = !gated_delta_run(&want.m, &want.c);
  for (int i = 0; i < LENGTH(cuts); i++) {
    struct delta_data got = delta_make(m, 1, &n, slots, 1);
    ok(good && !cut_run(dev, &got, cuts[i]) && !*mixer_apart(&got, &want),
       "%lld tokens, %lld a call, as all in one: %s", (long long)n, (long long)cuts[i],
       mixer_apart(&got, &want));
    delta_free(&got);
  }
  delta_free(&want);
}

/* Several calls of one mixer, whose pool stays on the GPU: with the same slots twice, with others,
 * and with the first ones again. */
static int calls_run(struct device *dev, struct delta_data *d, const idx slots[][6], int calls)
{
  struct mixer_buffers b = {0};
  struct mixer w = {0};
  const struct mixer_plan plan = {&d->m, 3, d->c.slots.slots, d->tokens};
  int status = mixer_buffers_make(dev, d, &b);
  if (!status) status = mixer_open(&w, dev, &plan);
  for (int i = 0; i < calls && !status; i++) {
    const struct mixer_job job = {.slots = {3, d->c.slots.slots, slots[i], slots[i] + 3},
                                  .start = d->c.start,
                                  .count = d->c.count,
                                  .x = &b.x,
                                  .g = &b.g,
                                  .beta = &b.beta,
                                  .conv = &b.conv,
                                  .conv_bias = &b.bias,
                                  .s = &b.s,
                                  .taps = &b.taps,
                                  .o = &b.o};
    status = mixer_run(&w, &job);
  }
  if (!status) status = mixer_buffers_get(dev, &b);
  mixer_close(&w);
  mixer_buffers_free(dev, &b);
  return status;
}

static void calls_check(struct device *dev)
{
  static const idx slots[][6] = {{0, 1, 2, 0, 1, 2},  {0, 1, 2, 0, 1, 2}, {0, 1, 2, 1, 2, 0},
                                 {3, 1, -1, 0, 1, 3}, {0, 1, 2, 0, 1, 2}, {0, 1, 2, 0, 1, 2}};
  for (int longer = 0; longer < 2; longer++) {
    const gidx lengths[] = {1, 1 + 40 * longer, 1};
    struct gated_delta m = net_of(2, 4, 128, 128);
    idx all[6];
    for (int i = 0; i < 6; i++) all[i] = slots[0][i % 2 * 3 + i / 2];
    struct delta_data want = delta_make(m, 3, lengths, all, 4),
                      got = delta_make(m, 3, lengths, all, 4);
    int good = 1;
    for (int i = 0; i < LENGTH(slots); i++) {
      want.c.slots.in = slots[i], want.c.slots.out = slots[i] + 3;
      good = good && !gated_delta_run(&want.m, &want.c);
    }
    ok(good && !calls_run(dev, &got, slots, LENGTH(slots)) && !*mixer_apart(&got, &want),
       "%d calls of one mixer, %lld tokens first: %s", LENGTH(slots), (long long)lengths[1],
       mixer_apart(&got, &want));
    delta_free(&want);
    delta_free(&got);
  }
}

static void refusals_check(struct device *dev)
{
  static const idx slots[] = {0, 1, 2, 1};
  static const gidx lengths[] = {1, 1};
  gidx gathered;
  struct delta_data t = delta_make(net_of(1, 2, 8, 8), 2, lengths, slots, 3);
  int status = mixer_call(dev, &t, 0, &gathered);
  ok(status == ERR_INPUT && strstr(status_message(), "sequences 0 and 1 both write slot 1"),
     "refused: %s", status_message());
  status_clear();
  delta_free(&t);
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  struct device dev;
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  if (!ok(!device_open(&dev, &options), "a GPU is opened")) return done_testing();
  mixer_shapes(&dev, is_small());
  mixer_slots(&dev);
  mixer_extremes(&dev);
  lengths_check(&dev);
  many_check(&dev);
  cuts_check(&dev);
  calls_check(&dev);
  refusals_check(&dev);
  device_close(&dev);
  return done_testing();
}
