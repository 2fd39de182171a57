/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops: over shards, blocks of positions, and positions. */
#include "model/attention.h"

#include <math.h>

#include "base/num.h"
#include "model/functions.h"

static const real LOG2_E = 0x1.71547652b82fep+0;
static const float LN2 = 0x1.62e430p-1f;

void attention_seen(const struct attention *a, gidx p, gidx n_kv, gidx *from, gidx *end)
{
  *from = a->window ? imax(p - a->window + 1, 0) : 0;
  gidx last = a->causal ? p : a->window ? p + a->window - 1 : n_kv - 1;
  *end = imax(imin(last + 1, n_kv), *from);
  if (*end == *from) *from = *end = 0;
}

struct attention_factors attention_factors(const struct attention *a)
{
  int caps = a->softcap > 0;
  return (struct attention_factors){.inner = caps ? (float)(a->scale / a->softcap) : 0,
                                    .exponent = (float)((caps ? a->softcap : a->scale) * LOG2_E)};
}

void attention_sum_begin(const struct attention *a, struct attention_sum *s)
{
  s->m = -INFINITY;
  s->l = 0;
  for (idx c = 0; c < a->dv; c++) s->acc[c] = 0;
}

/* The larger of a and b; NaN if either is NaN. */
static float larger(float a, float b)
{
  return a != a || a > b ? a : b;
}

void attention_sum_join(const struct attention *a, struct attention_sum *s,
                        const struct attention_sum *more)
{
  float m = larger(s->m, more->m), own = exp2_f32(s->m - m), other = exp2_f32(more->m - m);
  s->m = m;
  s->l = fmaf(more->l, other, s->l * own);
  for (idx c = 0; c < a->dv; c++) s->acc[c] = fmaf(more->acc[c], other, s->acc[c] * own);
}

void attention_finish(const struct attention *a, const struct attention_sum *s, int sees,
                      float *out, float *lse)
{
  int valid = isfinite(s->m);
  *lse = !sees ? -INFINITY : valid ? fmaf(s->m, LN2, log_f32(s->l)) : NAN;
  for (idx c = 0; c < a->dv; c++) {
    out[c] = !sees ? 0 : valid ? s->acc[c] / s->l : NAN;
    if (isnan(out[c])) out[c] = NAN; /* every NaN gets the same bits */
  }
}

gidx attention_cell(const struct attention_cells *c, gidx j)
{
  return c->table ? (gidx)c->table[j / c->size] * c->size + j % c->size : j;
}

struct walk {
  const struct attention *a;
  const struct attention_cells *cells;
  struct attention_factors factors;
  const float *q;
  idx kv_head;
};

float attention_cap(const struct attention_factors *factors, float u)
{
  return factors->inner != 0 ? tanh_f32(u * factors->inner) : u;
}

float attention_score(const struct attention *a, const struct attention_factors *factors,
                      const float *q, const float *k)
{
  float u = 0;
  for (idx first = 0; first < a->d; first += ATTENTION_CHAIN) {
    float chain = 0;
    idx end = first + ATTENTION_CHAIN < a->d ? first + ATTENTION_CHAIN : a->d;
    for (idx c = first; c < end; c++) chain = fmaf(q[c], k[c], chain);
    u = first ? u + chain : chain;
  }
  return attention_cap(factors, u);
}

/* Add positions from .. end - 1, which are all in one block, to s. */
static void block_accumulate(const struct walk *w, gidx from, gidx end, struct attention_sum *s)
{
  const struct attention *a = w->a;
  float u[ATTENTION_BLOCK], largest = -INFINITY;
  for (gidx j = from; j < end; j++) {
    const float *k = w->cells->k + (attention_cell(w->cells, j) * a->kv_heads + w->kv_head) * a->d;
    u[j - from] = attention_score(a, &w->factors, w->q, k);
    largest = larger(largest, u[j - from]);
  }
  float m = larger(s->m, largest * w->factors.exponent), shrink = exp2_f32(s->m - m);
  s->m = m;
  s->l *= shrink;
  for (idx c = 0; c < a->dv; c++) s->acc[c] *= shrink;
  for (gidx j = from; j < end; j++) {
    float p = exp2_f32(fmaf(u[j - from], w->factors.exponent, -m));
    const float *v = w->cells->v + (attention_cell(w->cells, j) * a->kv_heads + w->kv_head) * a->dv;
    s->l += p;
    for (idx c = 0; c < a->dv; c++) s->acc[c] = fmaf(p, v[c], s->acc[c]);
  }
}

/* s <- the sum over positions from .. end - 1, which are all in one shard. */
static void shard_accumulate(const struct walk *w, gidx from, gidx end, struct attention_sum *s)
{
  attention_sum_begin(w->a, s);
  for (gidx next; from < end; from = next) {
    next = imin((from / ATTENTION_BLOCK + 1) * ATTENTION_BLOCK, end);
    block_accumulate(w, from, next, s);
  }
}

void attention_row_sum(const struct attention *a, const struct attention_cells *cells,
                       const float *q, idx head, gidx from, gidx end, struct attention_sum *s)
{
  float acc[MAX_HEAD_COLUMNS];
  struct attention_sum shard = {.acc = acc};
  struct walk w = {a, cells, attention_factors(a), q, head / (a->heads / a->kv_heads)};
  attention_sum_begin(a, s);
  int sees = 0;
  for (gidx next; from < end; from = next, sees = 1) {
    next = imin((from / ATTENTION_SHARD + 1) * ATTENTION_SHARD, end);
    shard_accumulate(&w, from, next, sees ? &shard : s);
    if (sees) attention_sum_join(a, s, &shard);
  }
}

void attention_row(const struct attention *a, const struct attention_cells *cells, const float *q,
                   idx head, gidx from, gidx end, float *out, float *lse)
{
  float acc[MAX_HEAD_COLUMNS];
  struct attention_sum sum = {.acc = acc};
  attention_row_sum(a, cells, q, head, from, end, &sum);
  attention_finish(a, &sum, from < end, out, lse);
}
