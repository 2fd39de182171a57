/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: attention on a CPU has the bits of its reference, for all shapes, masks, splits of the
 * queries, thread counts and variants. */
#include "attention_data.h"
#include "base/num.h"
#include "base/status.h"
#include "device/attention.h"
#include "device_how.h"
#include "tap.h"
#include "variants.h"

static const gidx lengths[] = {1, 7, 64, 127, 128, 129, 1000};
static const idx widths[] = {16, 32, 64, 96, 128, 256};

/* The device's results for a sequence. */
struct result {
  gidx *from, *end;
  float *m, *l, *acc;
};

static void result_init(struct result *r, const struct sequence *s)
{
  gidx rows = s->n_q * s->a.heads;
  r->from = malloc((size_t)s->n_q * sizeof *r->from);
  r->end = malloc((size_t)s->n_q * sizeof *r->end);
  r->m = malloc((size_t)rows * sizeof *r->m);
  r->l = malloc((size_t)rows * sizeof *r->l);
  r->acc = malloc((size_t)(rows * attention_stride(s->a.dv)) * sizeof *r->acc);
  for (gidx i = 0; i < s->n_q; i++) sequence_seen(s, i, r->from + i, r->end + i);
}

static void result_free(struct result *r)
{
  free(r->from);
  free(r->end);
  free(r->m);
  free(r->l);
  free(r->acc);
}

/* Compute all shards, `split` queries at a time.  1: done. */
static int sequence_run(struct device *dev, const struct sequence *s, struct result *r, gidx split)
{
  const struct attention *a = &s->a;
  gidx stride = attention_stride(a->dv);
  for (gidx i = 0; i < s->n_q; i += split)
    for (gidx j = 0; j < s->n_kv; j += ATTENTION_SHARD) {
      struct attention_job job = {.attention = a,
                                  .n = (idx)imin(split, s->n_q - i),
                                  .q = s->q + i * a->heads * a->d,
                                  .from = r->from + i,
                                  .end = r->end + i,
                                  .first = j,
                                  .count = (idx)imin(ATTENTION_SHARD, s->n_kv - j),
                                  .k = s->k + j * a->kv_heads * a->d,
                                  .v = s->v + j * a->kv_heads * a->dv,
                                  .m = r->m + i * a->heads,
                                  .l = r->l + i * a->heads,
                                  .acc = r->acc + i * a->heads * stride};
      if (device_attention(dev, &job)) return 0;
    }
  return 1;
}

/* Does query i have the bits of the reference in a head? */
static int row_same(const struct sequence *s, const struct result *r, gidx i, idx head)
{
  const struct attention *a = &s->a;
  const struct attention_cells cells = sequence_cells(s);
  float want[MAX_HEAD_COLUMNS + 1], got[MAX_HEAD_COLUMNS + 1];
  gidx at = i * a->heads + head;
  struct attention_sum sum = {r->m[at], r->l[at], r->acc + at * attention_stride(a->dv)};
  sequence_row(s, &cells, i, head, want + 1, want);
  attention_finish(a, &sum, r->from[i] < r->end[i], got + 1, got);
  return memcmp(want, got, (size_t)(a->dv + 1) * sizeof *got) == 0;
}

/* Check some of the queries, including the first and the last, in all heads. */
static void sequence_check(struct device *dev, const struct sequence *s, gidx split)
{
  struct result r;
  result_init(&r, s);
  int good = sequence_run(dev, s, &r, split);
  gidx step = imax(s->n_q / 9, 1);
  for (gidx i = 0; good && i < s->n_q;
       i = i + step < s->n_q || i == s->n_q - 1 ? i + step : s->n_q - 1)
    for (idx h = 0; h < s->a.heads; h++) good &= row_same(s, &r, i, h);
  ok(good,
     "%d heads of %d, D %d and %d, causal %d, window %lld, cap %g, %lld queries of %lld by "
     "%lld",
     s->a.heads, s->a.kv_heads, s->a.d, s->a.dv, s->a.causal, (long long)s->a.window, s->a.softcap,
     (long long)s->n_q, (long long)s->n_kv, (long long)split);
  result_free(&r);
}

static void shape_check(struct device *dev, struct attention a, gidx n_q, gidx n_kv, gidx split)
{
  struct sequence s = sequence_make(a, n_q, n_kv, 1);
  sequence_check(dev, &s, split);
  sequence_free(&s);
}

static void lengths_check(struct device *dev)
{
  for (int q = 0; q < LENGTH(lengths); q++)
    for (int k = 0; k < LENGTH(lengths); k++)
      for (int causal = 0; causal < 2; causal++) {
        idx d = widths[(q + k) % LENGTH(widths)];
        struct attention a = {.heads = 3, .kv_heads = 3, .d = d, .dv = d, .causal = causal};
        shape_check(dev, a, lengths[q], lengths[k], lengths[q]);
      }
  for (int w = 0; w < LENGTH(widths); w++) {
    struct attention a = {.heads = 2, .kv_heads = 1, .d = widths[w], .dv = widths[w], .causal = 1};
    shape_check(dev, a, 129, 129, 129);
  }
}

/* Heads that share keys, long sequences, masks that begin anywhere, and widths that fill no
 * vector. */
static void kinds_check(struct device *dev)
{
  struct attention kinds[] = {{.heads = 8, .kv_heads = 2, .d = 24, .dv = 40, .causal = 1},
                              {.heads = 6, .kv_heads = 2, .d = 17, .dv = 5, .window = 70},
                              {.heads = 5, .kv_heads = 1, .d = 64, .dv = 64, .causal = 1},
                              {.heads = 1, .kv_heads = 1, .d = 1, .dv = 1, .causal = 1},
                              {.heads = 2, .kv_heads = 1, .d = 129, .dv = 9, .causal = 1},
                              {.heads = 1, .kv_heads = 1, .d = 300, .dv = 17},
                              {.heads = 2, .kv_heads = 2, .d = 32, .dv = 32, .softcap = 1},
                              {.heads = 2, .kv_heads = 2, .d = 32, .dv = 32, .scale = 30}};
  kinds[2].window = 1100;
  kinds[4].causal = 1;
  for (int i = 0; i < LENGTH(kinds); i++) {
    gidx n = is_small() ? 1100 : 3001; /* two shards, or three */
    shape_check(dev, kinds[i], 61, n, 61);
    shape_check(dev, kinds[i], 61, n, 1);
    if (!is_small()) shape_check(dev, kinds[i], 2500, 2100, 700);
  }
}

/* Masked values that are not finite change nothing; those that are seen give the reference's
 * NaN. */
static void not_finite_check(struct device *dev)
{
  struct attention a = {.heads = 2, .kv_heads = 1, .d = 16, .dv = 16, .causal = 1, .window = 90};
  struct sequence s = sequence_make(a, 1100, 1100, 1);
  static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
  for (int i = 0; i < 40; i++) {
    gidx at = (gidx)random_below(3, 1, (uint64_t)i, 1100 * 16);
    (i % 2 ? s.k : s.v)[at] = bad[i / 2 % 4];
  }
  sequence_check(dev, &s, 300);
  for (gidx i = 0; i < 1100 * 16; i++) s.k[i] = i % 16 ? 0 : -INFINITY;
  sequence_check(dev, &s, 1100);
  sequence_free(&s);
}

int main(void)
{
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int threads = 1; threads < 4; threads += 2) {
      struct device dev = {0};
      struct device_options options = {
          .p = 1, .d = 1, .threads = threads, .variant = loop_variants[v]};
      claim_begin("%s, %d threads: the reference's bits", loop_variants[v], threads);
      if (device_open(&dev, &options) == ERR_DEVICE) {
        skip("this processor lacks %s", loop_variants[v]);
        status_clear();
      } else {
        if (threads == 1) lengths_check(&dev);
        if (threads > 1 || !is_small()) kinds_check(&dev);
        not_finite_check(&dev);
        device_close(&dev);
      }
      claim_end();
    }
  return done_testing();
}
