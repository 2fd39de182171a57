/* SPDX-License-Identifier: BSD-3-Clause
 * A capture in memory, and two devices whose memory is too small for it, so that they take its keys
 * and values in pieces (harvest/pieces.h): a GPU that reports little memory, and a CPU that calls
 * itself a GPU and computes by the plain loops. */
#ifndef TESTS_PIECES_MADE_H
#define TESTS_PIECES_MADE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/attribution.h"
#include "device/backend.h"
#include "device_how.h"
#include "harvest/harvest.h"
#include "model/attribution.h"

enum { SEQUENCES = 7 };
static const gidx most_lengths[SEQUENCES] = {1100, 3, 5000, 0, 1024, 2100, 64},
                  few_lengths[SEQUENCES] = {70, 3, 1090, 0, 1024, 17, 64},
                  most_queries[SEQUENCES] = {1100, 5, 2, 2, 40, 60, 1},
                  few_queries[SEQUENCES] = {70, 5, 1, 2, 2, 9, 1};

/* A capture in memory. */
struct made {
  struct capture_source source;
  gidx start[SEQUENCES + 1], first[SEQUENCES + 1];
  float *q, *k, *v;
};

static float *floats_make(gidx count, uint64_t stream, float size)
{
  float *out = malloc((size_t)count * sizeof *out);
  for (gidx i = 0; i < count; i++) out[i] = size * (float)random_normal(7, stream, (uint64_t)i);
  return out;
}

static int queries_read(void *self, gidx first, idx count, float *q)
{
  struct made *m = self;
  gidx row = (gidx)m->source.attention.heads * m->source.attention.d;
  memcpy(q, m->q + first * row, (size_t)(count * row) * sizeof *q);
  return OK;
}

static int positions_read(void *self, gidx sequence, gidx first, idx count, float *k, float *v)
{
  struct made *m = self;
  const struct attention *a = &m->source.attention;
  gidx at = (m->first[sequence] + first) * a->kv_heads, n = (gidx)count * a->kv_heads;
  memcpy(k, m->k + at * a->d, (size_t)(n * a->d) * sizeof *k);
  memcpy(v, m->v + at * a->dv, (size_t)(n * a->dv) * sizeof *v);
  return OK;
}

/* All cells together do not fit into memory, so nothing may call this. */
static int cells_read(void *self, gidx first, gidx count, void *k, void *v)
{
  (void)self, (void)first, (void)k, (void)v;
  FAIL(ERR_INTERNAL, "%lld cells are read", (long long)count);
}

static void made_init(struct made *m, struct attention a)
{
  a.scale = 1 / sqrt(a.d);
  *m = (struct made){0};
  const gidx *lengths = is_small() ? few_lengths : most_lengths;
  const gidx *queries = is_small() ? few_queries : most_queries;
  for (int i = 0; i < SEQUENCES; i++) {
    m->start[i + 1] = m->start[i] + queries[i];
    m->first[i + 1] = m->first[i] + lengths[i];
  }
  m->q = floats_make(m->start[SEQUENCES] * a.heads * a.d, 1, 2);
  m->k = floats_make(m->first[SEQUENCES] * a.kv_heads * a.d, 2, 1);
  m->v = floats_make(m->first[SEQUENCES] * a.kv_heads * a.dv, 3, 1);
  m->source =
      (struct capture_source){.attention = a,
                              .n = m->start[SEQUENCES],
                              .sequences = SEQUENCES,
                              .start = m->start,
                              .length = lengths,
                              .name = "made",
                              .self = m,
                              .queries = queries_read,
                              .positions = positions_read,
                              .cells = {.units = (gidx)1 << 40, .size = 1, .read = cells_read}};
}

static void made_free(struct made *m)
{
  free(m->q);
  free(m->k);
  free(m->v);
}

/* The backend of these devices, the memory that they report, and counts of their calls. */
static struct {
  struct backend backend;
  gidx memory;
  int walks, pieces; /* calls of attention or attribution so far; pieces of sequences in them */
} fake;

static int fake_available(struct device *dev, gidx *bytes)
{
  (void)dev;
  *bytes = fake.memory;
  return OK;
}

/* A copy of the plan is enough, because the arrays that it points to stay. */
static int fake_open(struct attend *w, const struct attend_plan *plan)
{
  struct attend_plan *own = malloc(sizeof *own);
  *own = *plan;
  w->state = own;
  return OK;
}

static void fake_close(struct attend *w)
{
  free(w->state);
}

/* Compute query i of sequence s of a plan, in a head.  If the plan says so, the sums of earlier
 * pieces are continued. */
static void fake_row(const struct attend_plan *p, const struct attend_job *job, idx s, gidx i,
                     idx head)
{
  const struct attention *a = p->attention;
  gidx from, end, at = (p->start[s] + i) * a->heads + head, place = p->at[s] + i;
  float *m = (float *)job->m->device + at, *l = (float *)job->l->device + at,
        part[MAX_HEAD_COLUMNS];
  struct attention_sum sum = {*m, *l, (float *)job->rows->device + at * attention_stride(a->dv)};
  struct attention_sum more = {.acc = part};
  const struct attention_cells cells = {
      .k = (float *)job->k->device + p->cell[s] * a->kv_heads * a->d,
      .v = (float *)job->v->device + p->cell[s] * a->kv_heads * a->dv};
  attention_seen(a, place, p->length[s], &from, &end);
  int begins = !p->goes_on[s] || (a->window && place - a->window + 1 >= 0);
  for (gidx next; from < end; from = next, begins = 0) {
    next = imin((from / ATTENTION_SHARD + 1) * ATTENTION_SHARD, end);
    attention_row_sum(a, &cells, (float *)job->q->device + at * a->d, head, from, next, &more);
    if (!begins)
      attention_sum_join(a, &sum, &more);
    else
      memcpy(sum.acc, part, (size_t)a->dv * sizeof *part), sum.m = more.m, sum.l = more.l;
  }
  *m = sum.m, *l = sum.l;
}

static int fake_run(struct attend *w, const struct attend_job *job)
{
  const struct attend_plan *p = w->state;
  for (idx s = 0; s < p->sequences; s++)
    for (gidx i = 0; i < p->start[s + 1] - p->start[s]; i++)
      for (idx head = 0; head < p->attention->heads; head++) fake_row(p, job, s, i, head);
  fake.walks++, fake.pieces += p->sequences;
  return OK;
}

/* Compute pair e of query i of sequence s of a plan, over all heads. */
static void fake_pair(const struct attend_plan *p, const struct attribute_job *job, idx s, gidx i,
                      gidx e)
{
  const struct attention *a = p->attention;
  const struct attention_factors factors = attention_factors(a);
  struct top_rows top = {(idx)job->pairs, job->top, job->row->device, job->code->device};
  gidx from, end, query = p->start[s] + i;
  const float *k = (float *)job->k->device + p->cell[s] * a->kv_heads * a->d;
  const float *v = (float *)job->v->device + p->cell[s] * a->kv_heads * a->dv;
  attention_seen(a, p->at[s] + i, p->length[s], &from, &end);
  for (idx h = 0; h < a->heads; h++) {
    gidx row = query * a->heads + h, kv_head = h / (a->heads / a->kv_heads);
    real *part = (real *)job->part->device + e * a->heads + h;
    const float *atom = (float *)job->atoms->device +
                        ((gidx)((idx *)job->atom_of->device)[e] * a->heads + h) * a->dv;
    for (gidx j = from; j < end; j++) {
      gidx cell = j * a->kv_heads + kv_head;
      float u = attention_score(a, &factors, (float *)job->q->device + row * a->d, k + cell * a->d);
      real product = 0;
      for (idx c = 0; c < a->dv; c++) product += (real)v[cell * a->dv + c] * (real)atom[c];
      real own = product * attribution_weight(&factors, u, ((float *)job->m->device)[row],
                                              ((float *)job->l->device)[row]);
      *part += own;
      top_add(&top, (idx)e, (p->first[s] + j) * a->heads + h, (float)own);
    }
  }
}

static int fake_attribute(struct attend *w, const struct attribute_job *job)
{
  const struct attend_plan *p = w->state;
  for (idx s = 0; s < p->sequences; s++)
    for (gidx i = p->start[s]; i < p->start[s + 1]; i++)
      for (gidx e = job->start[i]; e < job->end[i]; e++) fake_pair(p, job, s, i - p->start[s], e);
  fake.walks++, fake.pieces += p->sequences;
  return OK;
}

/* The memory of a device with room for `shards` shards of keys and values.  Keys and values may
 * take a quarter of this memory. */
static gidx memory_of(const struct attention *a, gidx shards)
{
  return 4 * shards * ATTENTION_SHARD * a->kv_heads * (a->d + a->dv) * (gidx)sizeof(float);
}

/* Let a device report the memory that `fake` has. */
static void memory_fake(struct device *dev)
{
  fake.backend = *dev->backend;
  fake.backend.bytes_available = fake_available;
  dev->backend = &fake.backend;
}

/* Open a CPU that calls itself a GPU. */
static int loops_open(struct device *dev)
{
  const struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  if (device_open(dev, &options)) return 0;
  memory_fake(dev);
  fake.backend.attend_open = fake_open;
  fake.backend.attend_close = fake_close;
  fake.backend.attend_run = fake_run;
  fake.backend.attend_attribute = fake_attribute;
  dev->kind = "cuda";
  strcpy(dev->variant, "plain loops");
  return 1;
}

static int gpu_open(struct device *dev, const struct comm *c)
{
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  options.local_rank = c->local_rank;
  if (device_open(dev, &options)) return 0;
  memory_fake(dev);
  return 1;
}

enum { LOOPS_KINDS = 4 };
static const struct attention kinds[] = {
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .causal = 1},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .causal = 1, .window = 300},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .window = 1100, .softcap = 2},
    /* The first LOOPS_KINDS are also for the plain loops; the others are for GPUs only. */
    {.heads = 6, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1},
    {.heads = 4, .kv_heads = 4, .d = 128, .dv = 128, .causal = 1, .window = 1500},
    {.heads = 3, .kv_heads = 1, .d = 40, .dv = 200, .softcap = 3}};

#endif
