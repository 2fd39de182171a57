/* SPDX-License-Identifier: BSD-3-Clause
 * Problems of attention for tests of GPUs: queries, keys and values of many streams.  Keys and
 * values of a stream are contiguous (PLAIN), or in blocks of a paged pool. */
#ifndef TESTS_ATTEND_PROBLEM_H
#define TESTS_ATTEND_PROBLEM_H

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/num.h"
#include "device/attention.h"
#include "device_how.h"

/* Blocks of a pool are in order (IDENTITY) or in random order (PERMUTED).  SHARED: whole blocks at
 * the beginning of all streams are those of the first stream.  SWAPPED: two entries of the table
 * are exchanged, so that a result has to differ. */
enum layout { PLAIN, IDENTITY, PERMUTED, SHARED, SWAPPED };
static const char *const layout_names[] = {"plain", "identity", "permuted", "shared", "swapped"};
static const char *const type_names[] = {"f32", "f16", "bf16"};

enum { MAX_STREAMS = 64, WITH_NAN = 1, WITH_HUGE = 2 };

struct shape {
  struct attention a;
  int streams;
  gidx n_q[MAX_STREAMS], n_kv[MAX_STREAMS];
  enum attend_type type;
  enum layout layout;
  idx size;   /* cells of a block */
  int bad;    /* for f32 only.  If it is not 0, some values of k and v are 3e38; with WITH_NAN some
               * others are NaN or infinite */
  float big;  /* factor of the values of q; 0 stands for 1 */
  int coarse; /* 1: all values of k and v are 1 or -1 */
};

struct problem {
  struct shape z;
  /* First query, and first position, of each stream. */
  gidx start[MAX_STREAMS + 1], first[MAX_STREAMS + 1];
  gidx at[MAX_STREAMS], cell[MAX_STREAMS];
  float *q, *k, *v; /* k, v: by position, rounded to the type */
  void *store[2];   /* k, v: by cell of the pool, in the type */
  idx *table;
  gidx width, cells;
  struct buffer sides[5]; /* q, k, v, rows, lse */
};

static _Thread_local uint64_t draws;

/* A random number, uniform in -1 .. 1. */
static float draw(void)
{
  draws = draws * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(int64_t)draws * 0x1p-63);
}

static idx draw_below(idx n)
{
  draw();
  return (idx)((draws >> 33) % (uint64_t)n);
}

/* x rounded to a type: to nearest for f16, towards 0 for bf16. */
static float value_of(enum attend_type type, float x)
{
  uint16_t bits;
  float out = x;
  memcpy(&bits, (const char *)&x + 2, sizeof bits);
  if (type == ATTEND_BF16) bf16_to_f32(&bits, 1, &out);
  if (type == ATTEND_F16) bits = f16_bits(x), f16_to_f32(&bits, 1, &out);
  return out;
}

static void value_store(enum attend_type type, float x, void *to, gidx at)
{
  uint16_t bits;
  memcpy(&bits, (const char *)&x + 2, sizeof bits);
  if (type == ATTEND_F32)
    ((float *)to)[at] = x;
  else
    ((uint16_t *)to)[at] = type == ATTEND_BF16 ? bits : f16_bits(x);
}

static float *floats_make(gidx count, enum attend_type type, float size)
{
  float *out = malloc((size_t)(count + 1) * sizeof *out);
  for (gidx i = 0; i < count; i++) out[i] = value_of(type, 1.7f * size * draw());
  return out;
}

/* Replace some values by huge ones; WITH_NAN: also by NaN and infinities. */
static void floats_spoil(float *x, gidx count, int bad)
{
  static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f};
  for (int i = 0; i < 12 && bad; i++)
    x[draw_below((idx)imin(count, 1 << 20))] = bad & WITH_NAN ? values[i % 4] : values[3];
}

/* Draw q, k and v.  With SHARED all streams begin with the values of the first stream. */
static void values_make(struct problem *p)
{
  const struct shape *z = &p->z;
  const struct attention *a = &z->a;
  gidx n = p->first[z->streams], wide[2] = {a->kv_heads * a->d, a->kv_heads * a->dv};
  float **const all[] = {&p->k, &p->v};
  p->q = floats_make(p->start[z->streams] * a->heads * a->d, ATTEND_F32, z->big ? z->big : 1);
  for (int i = 0; i < 2; i++) {
    *all[i] = floats_make(n * wide[i], z->type, 1);
    for (gidx j = 0; j < n * wide[i] && z->coarse; j++) (*all[i])[j] = (*all[i])[j] < 0 ? -1 : 1;
    if (z->type == ATTEND_F32) floats_spoil(*all[i], n * wide[i], z->bad);
    for (int s = 1; s < z->streams && z->layout == SHARED; s++)
      memcpy(*all[i] + p->first[s] * wide[i], *all[i],
             (size_t)(imin(z->n_kv[s], z->n_kv[0]) * wide[i]) * sizeof **all[i]);
  }
}

/* Assign blocks of the pool to the streams, in order (IDENTITY) or in random order.  Except with
 * IDENTITY the pool has blocks that no stream uses. */
static void table_make(struct problem *p)
{
  const struct shape *z = &p->z;
  gidx blocks = 0, next = 0;
  for (int s = 0; s < z->streams; s++) {
    p->width = imax(p->width, ceil_div(z->n_kv[s], z->size) + 1);
    blocks += ceil_div(z->n_kv[s], z->size);
  }
  idx spare = z->layout == IDENTITY ? 0 : 5, *order = malloc((size_t)(blocks + 6) * sizeof *order);
  blocks += spare;
  for (idx i = 0; i < blocks; i++) order[i] = i;
  for (idx i = (idx)blocks - 1; i > 0 && z->layout != IDENTITY; i--) {
    idx j = draw_below(i + 1), swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
  p->table = malloc((size_t)(z->streams * p->width) * sizeof *p->table);
  for (int s = 0; s < z->streams; s++)
    for (gidx b = 0; b < p->width; b++) {
      idx *entry = p->table + s * p->width + b;
      gidx end = (b + 1) * z->size;
      if (b * z->size >= z->n_kv[s])
        *entry = -1;
      else if (z->layout == SHARED && s && end <= imin(z->n_kv[0], z->n_kv[s]))
        *entry = p->table[b];
      else
        *entry = order[next++];
    }
  free(order);
  p->cells = blocks * z->size;
}

static gidx cell_of(const struct problem *p, int s, gidx j)
{
  if (p->z.layout == PLAIN) return p->cell[s] + j;
  return (gidx)p->table[s * p->width + j / p->z.size] * p->z.size + j % p->z.size;
}

/* Store k and v by cell.  In cells without a position every bit is 1, a NaN. */
static void cells_make(struct problem *p)
{
  const struct shape *z = &p->z;
  gidx wide[2] = {z->a.kv_heads * z->a.d, z->a.kv_heads * z->a.dv};
  const float *const from[] = {p->k, p->v};
  if (z->layout != PLAIN) table_make(p);
  for (int s = 0; s < z->streams && z->layout == PLAIN; s++) {
    p->cell[s] = p->cells + 3;
    p->cells += z->n_kv[s] + 3;
  }
  for (int i = 0; i < 2; i++) {
    gidx bytes = p->cells * wide[i] * (z->type == ATTEND_F32 ? 4 : 2);
    p->store[i] = malloc((size_t)bytes + 1);
    memset(p->store[i], 0xff, (size_t)bytes);
    for (int s = 0; s < z->streams; s++)
      for (gidx j = 0; j < z->n_kv[s]; j++)
        for (gidx c = 0; c < wide[i]; c++)
          value_store(z->type, from[i][(p->first[s] + j) * wide[i] + c], p->store[i],
                      cell_of(p, s, j) * wide[i] + c);
  }
  if (z->layout == SWAPPED) {
    idx swapped = p->table[0];
    p->table[0] = p->table[1];
    p->table[1] = swapped;
  }
}

static void problem_make(struct problem *p, const struct shape *z)
{
  *p = (struct problem){.z = *z};
  draws = 1;
  if (p->z.a.scale == 0) p->z.a.scale = 1 / sqrt(z->a.d);
  for (int s = 0; s < z->streams; s++) {
    p->start[s + 1] = p->start[s] + z->n_q[s];
    p->first[s + 1] = p->first[s] + z->n_kv[s];
    p->at[s] = z->n_kv[s] - z->n_q[s];
  }
  values_make(p);
  cells_make(p);
}

static void problem_free(struct device *dev, struct problem *p)
{
  for (int i = 0; i < LENGTH(p->sides); i++) buffer_free(dev, &p->sides[i]);
  free(p->q);
  free(p->k);
  free(p->v);
  free(p->store[0]);
  free(p->store[1]);
  free(p->table);
}

static struct attend_plan plan_of(const struct problem *p)
{
  return (struct attend_plan){.attention = &p->z.a,
                              .sequences = p->z.streams,
                              .start = p->start,
                              .at = p->at,
                              .length = p->z.n_kv,
                              .cell = p->cell,
                              .table = p->table,
                              .width = p->width,
                              .size = p->z.size,
                              .cells = p->cells,
                              .type = p->z.type};
}

static struct attend_job job_of(const struct problem *p)
{
  return (struct attend_job){.q = &p->sides[0],
                             .k = &p->sides[1],
                             .v = &p->sides[2],
                             .rows = &p->sides[3],
                             .lse = &p->sides[4]};
}

/* Make the buffers on the device: q, k and v, and results in which every bit is 1. */
static int sides_make(struct device *dev, struct problem *p, const struct attend *w)
{
  const gidx bytes[] = {w->q, w->k, w->v, w->rows, w->lse};
  const void *const from[] = {p->q, p->store[0], p->store[1]};
  for (int i = 0; i < 5; i++) {
    TRY(buffer_alloc(dev, &p->sides[i], bytes[i]));
    if (i < 3) memcpy(p->sides[i].host, from[i], (size_t)bytes[i]);
    if (i >= 3) memset(p->sides[i].host, 0xff, (size_t)bytes[i]);
    TRY(device_put(dev, &p->sides[i], 0, p->sides[i].bytes));
  }
  return OK;
}

static void shape_say(const struct shape *z, int good, int bad)
{
  const struct attention *a = &z->a;
  ok(good,
     "%s %s %d: %d heads of %d, D %d and %d, causal %d, window %lld, cap %g, %d streams, %lld "
     "queries of %lld first: %d differ",
     type_names[z->type], layout_names[z->layout], z->size, a->heads, a->kv_heads, a->d, a->dv,
     a->causal, (long long)a->window, a->softcap, z->streams, (long long)z->n_q[0],
     (long long)z->n_kv[0], bad);
}

#endif
