/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the reference of attention (N.27) is softmax attention, for all shapes and masks.  Neither
 * cells that are masked nor the places of blocks in a pool change a bit. */
#include "attention_data.h"
#include "base/num.h"
#include "base/status.h"
#include "tap.h"

static const gidx lengths[] = {1, 7, 64, 127, 128, 129, 1000};
static const idx widths[] = {16, 32, 64, 96, 128, 256};

/* The largest error for scores of size 1: three times the largest measured one. */
static const double TOLERANCE = 3e-6;

static double score64(const struct sequence *s, gidx i, idx head, gidx j)
{
  const struct attention *a = &s->a;
  const float *q = s->q + (i * a->heads + head) * a->d;
  const float *k = s->k + (j * a->kv_heads + head / (a->heads / a->kv_heads)) * a->d;
  double u = 0;
  for (idx c = 0; c < a->d; c++) u += (double)q[c] * k[c];
  u *= a->scale;
  return a->softcap > 0 ? a->softcap * tanh(u / a->softcap) : u;
}

/* Differences from f64: of out and of lse; and of the sum of all weights from 1. */
struct distance {
  double out, lse, sum;
};

static struct distance distance_find(const struct sequence *s, gidx i, idx head)
{
  const struct attention *a = &s->a;
  float out[MAX_HEAD_COLUMNS], lse;
  double exact[MAX_HEAD_COLUMNS] = {0}, most = -INFINITY, total = 0, weights = 0;
  struct distance d = {0, 0, 0};
  gidx from, end;
  const struct attention_cells cells = sequence_cells(s);
  sequence_row(s, &cells, i, head, out, &lse);
  sequence_seen(s, i, &from, &end);
  if (from == end) {
    for (idx c = 0; c < a->dv; c++) d.out = fmax(d.out, fabs(out[c]));
    d.lse = lse == -INFINITY ? 0 : INFINITY;
    return d;
  }
  for (gidx j = from; j < end; j++) most = fmax(most, score64(s, i, head, j));
  for (gidx j = from; j < end; j++) {
    double u = score64(s, i, head, j), p = exp(u - most);
    const float *v = s->v + (j * a->kv_heads + head / (a->heads / a->kv_heads)) * a->dv;
    total += p;
    weights += exp(u - lse);
    for (idx c = 0; c < a->dv; c++) exact[c] += p * v[c];
  }
  for (idx c = 0; c < a->dv; c++) d.out = fmax(d.out, fabs(out[c] - exact[c] / total));
  d.lse = fabs(lse - (most + log(total)));
  d.sum = fabs(weights - 1);
  return d;
}

/* Check the first, the middle and the last query of the first and the last head. */
static void near_check(const struct sequence *s, double tolerance)
{
  for (int at = 0; at < 3; at++)
    for (int last = 0; last < 2; last++) {
      gidx i = at * (s->n_q - 1) / 2;
      struct distance d = distance_find(s, i, last * (s->a.heads - 1));
      ok(d.out <= tolerance && d.lse <= 2 * tolerance && d.sum <= 1e-5,
         "D %d, %lld queries of %lld, query %lld: off by %.3g, lse %.3g, sum %.3g", s->a.d,
         (long long)s->n_q, (long long)s->n_kv, (long long)i, d.out, d.lse, d.sum);
    }
}

static void shapes_check(void)
{
  claim_begin("results are near to softmax attention in f64, for all shapes");
  for (int w = 0; w < LENGTH(widths); w++)
    for (int q = 0; q < LENGTH(lengths); q++)
      for (int k = 0; k < LENGTH(lengths); k++)
        for (int causal = 0; causal < 2; causal++) {
          struct attention a = {.heads = 4, .kv_heads = 2, .d = widths[w], .dv = widths[w]};
          a.causal = causal;
          if (w % 2) a.dv = 24;
          struct sequence s = sequence_make(a, lengths[q], lengths[k], 1);
          near_check(&s, TOLERANCE);
          sequence_free(&s);
        }
  claim_end();
}

static void kinds_check(void)
{
  struct attention kinds[] = {{.causal = 1, .window = 100},
                              {.window = 100},
                              {.softcap = 5},
                              {.softcap = 30, .causal = 1, .window = 1},
                              {.scale = 0.5},
                              {.scale = 1e-3}};
  claim_begin("results with windows, soft caps and scales are near to softmax attention in f64");
  for (int i = 0; i < LENGTH(kinds); i++) {
    struct attention a = kinds[i];
    a.heads = 6, a.kv_heads = 2, a.d = a.dv = 32;
    struct sequence s = sequence_make(a, 1500, 3000, 1);
    near_check(&s, 2 * TOLERANCE);
    sequence_free(&s);
  }
  claim_end();
}

/* Scores of about 1e4: the largest score decides, and a unit in its last place is 1e-3. */
static void large_check(void)
{
  struct attention a = {.heads = 1, .kv_heads = 1, .d = 64, .dv = 64};
  struct sequence s = sequence_make(a, 20, 500, 60);
  claim_begin("scores up to 1e4 do not overflow");
  for (gidx i = 0; i < s.n_q; i++) {
    struct distance d = distance_find(&s, i, 0);
    ok(d.out < 2e-2 && d.lse < 1e-2, "query %lld: %.3g, %.3g", (long long)i, d.out, d.lse);
  }
  claim_end();
  sequence_free(&s);
}

/* Check which positions each query sees.  With q = 0 and unit vectors in v, out[j] > 0 where
 * position j is seen. */
static void mask_check(struct attention a, gidx n_q, gidx n_kv, const char *const *expected)
{
  a.heads = a.kv_heads = 1, a.d = 16, a.dv = (idx)n_kv;
  struct sequence s = sequence_make(a, n_q, n_kv, 0);
  const struct attention_cells cells = sequence_cells(&s);
  for (gidx j = 0; j < n_kv; j++)
    for (gidx c = 0; c < n_kv; c++) s.v[j * n_kv + c] = c == j;
  for (gidx i = 0; i < n_q; i++) {
    float out[16], lse;
    char seen[17] = "";
    sequence_row(&s, &cells, i, 0, out, &lse);
    for (gidx j = 0; j < n_kv; j++) seen[j] = out[j] > 0 ? 'x' : '.';
    ok(!strcmp(seen, expected[i]), "query %lld of %lld sees %s, not %s", (long long)i,
       (long long)n_q, seen, expected[i]);
  }
  sequence_free(&s);
}

static void masks_check(void)
{
  claim_begin("each query sees exactly the cells that its mask allows");
  mask_check((struct attention){.causal = 1}, 2, 5, (const char *const[]){"xxxx.", "xxxxx"});
  mask_check((struct attention){.causal = 1}, 5, 2,
             (const char *const[]){"..", "..", "..", "x.", "xx"});
  mask_check((struct attention){.causal = 1, .window = 2}, 2, 5,
             (const char *const[]){"..xx.", "...xx"});
  mask_check((struct attention){.window = 2}, 5, 5,
             (const char *const[]){"xx...", "xxx..", ".xxx.", "..xxx", "...xx"});
  mask_check((struct attention){.causal = 0}, 2, 3, (const char *const[]){"xxx", "xxx"});
  claim_end();
}

/* Put the positions of a sequence into blocks of a pool, in descending order of blocks.  Cells
 * without a position have NaN. */
static struct attention_cells pool_make(const struct sequence *s, idx size, idx *table)
{
  const struct attention *a = &s->a;
  gidx used = ceil_div(s->n_kv, size), cells = (used + 3) * size;
  gidx wide_k = a->kv_heads * a->d, wide_v = a->kv_heads * a->dv;
  float *k = malloc((size_t)(cells * wide_k) * sizeof *k);
  float *v = malloc((size_t)(cells * wide_v) * sizeof *v);
  for (gidx i = 0; i < cells * wide_k; i++) k[i] = NAN;
  for (gidx i = 0; i < cells * wide_v; i++) v[i] = NAN;
  for (gidx b = 0; b < used; b++) table[b] = (idx)(used + 1 - b);
  for (gidx j = 0; j < s->n_kv; j++) {
    gidx cell = (gidx)table[j / size] * size + j % size;
    memcpy(k + cell * wide_k, s->k + j * wide_k, (size_t)wide_k * sizeof *k);
    memcpy(v + cell * wide_v, s->v + j * wide_v, (size_t)wide_v * sizeof *v);
  }
  return (struct attention_cells){k, v, table, size};
}

static void pools_check(void)
{
  static const idx sizes[] = {1, 16, 48, 64, 256};
  struct attention a = {.heads = 2, .kv_heads = 1, .d = 16, .dv = 16, .causal = 1, .window = 1100};
  struct sequence s = sequence_make(a, 40, 2100, 1);
  const struct attention_cells plain = sequence_cells(&s);
  idx *table = malloc(3000 * sizeof *table);
  claim_begin("a paged pool gives the bits of contiguous cells");
  for (int b = 0; b < LENGTH(sizes); b++) {
    struct attention_cells pool = pool_make(&s, sizes[b], table);
    for (gidx i = 0; i < s.n_q; i += 13) {
      float expected[2][17], out[2][17];
      for (idx h = 0; h < 2; h++) {
        sequence_row(&s, &plain, i, h, expected[h], &expected[h][16]);
        sequence_row(&s, &pool, i, h, out[h], &out[h][16]);
      }
      ok(!memcmp(expected, out, sizeof out), "blocks of %d, query %lld", sizes[b], (long long)i);
    }
    free((void *)pool.k);
    free((void *)pool.v);
  }
  claim_end();
  free(table);
  sequence_free(&s);
}

/* Masked values that are not finite change nothing; those that are seen give NaN. */
static void not_finite_check(void)
{
  struct attention a = {.heads = 1, .kv_heads = 1, .d = 16, .dv = 16, .causal = 1};
  struct sequence s = sequence_make(a, 100, 100, 1);
  const struct attention_cells cells = sequence_cells(&s);
  float before[17], after[17];
  claim_begin("a NaN in a masked cell changes nothing; a score that is not finite gives NaN");
  sequence_row(&s, &cells, 69, 0, before, &before[16]);
  for (gidx i = 70 * 16; i < 100 * 16; i++) s.k[i] = s.v[i] = NAN;
  sequence_row(&s, &cells, 69, 0, after, &after[16]);
  ok(!memcmp(before, after, sizeof after), "a NaN in masked cells");
  sequence_row(&s, &cells, 70, 0, after, &after[16]);
  ok(isnan(after[0]) && isnan(after[16]), "a score is NaN");
  for (idx c = 0; c < 16; c++) s.q[c] = s.k[c] = 3e38f;
  sequence_row(&s, &cells, 0, 0, after, &after[16]);
  ok(isnan(after[0]) && isnan(after[16]), "a score is infinite");
  claim_end();
  sequence_free(&s);
}

int main(void)
{
  shapes_check();
  kinds_check();
  large_check();
  masks_check();
  pools_check();
  not_finite_check();
  return done_testing();
}
