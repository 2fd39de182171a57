/* SPDX-License-Identifier: BSD-3-Clause
 * Attention on the CPU.  The keys of a shard are transposed, and its values are padded, once for
 * all queries.  Then threads take tiles of rows.  A row is a query and a head. */
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/attention.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/cpu.h"

/* A job, and its shard in the form that the loops need. */
struct shard {
  const struct attention_job *job;
  const struct attention_loops *loops;
  idx stride, blocks;
  float *k, *v; /* [kv_heads][blocks][d][ATTENTION_BLOCK], [kv_heads][blocks * 64][stride] */
};

/* Pack block b of a head; positions past the end are 0. */
static void block_pack(const struct shard *s, idx head, idx b)
{
  const struct attention *a = s->job->attention;
  gidx place = (gidx)head * s->blocks + b;
  float *k = s->k + place * a->d * ATTENTION_BLOCK, *v = s->v + place * ATTENTION_BLOCK * s->stride;
  for (idx j = 0; j < ATTENTION_BLOCK; j++, v += s->stride) {
    gidx at = (gidx)b * ATTENTION_BLOCK + j;
    int there = at < s->job->count;
    const float *from = s->job->k + (at * a->kv_heads + head) * a->d;
    for (idx c = 0; c < a->d; c++) k[(gidx)c * ATTENTION_BLOCK + j] = there ? from[c] : 0;
    memset(v, 0, (size_t)s->stride * sizeof *v);
    if (there) memcpy(v, s->job->v + (at * a->kv_heads + head) * a->dv, (size_t)a->dv * sizeof *v);
  }
}

/* A row: its query, and its head of q. */
struct row {
  idx query, head;
};
static struct row row_of(const struct attention *a, idx kv_head, gidx r)
{
  idx group = a->heads / a->kv_heads;
  return (struct row){(idx)(r / group), kv_head * group + (idx)(r % group)};
}

/* Add the sums of a tile to the job's sums.  The first shard that a query sees sets them. */
static void tile_store(const struct shard *s, idx kv_head, gidx first, struct attention_tile *t)
{
  const struct attention_job *job = s->job;
  for (idx r = 0; r < ATTENTION_ROWS; r++) {
    if (t->from[r] == t->end[r]) continue;
    struct row row = row_of(job->attention, kv_head, first + r);
    gidx at = (gidx)row.query * job->attention->heads + row.head;
    struct attention_sum sum = {job->m[at], job->l[at], job->acc + at * s->stride};
    const struct attention_sum more = {t->m[r], t->l[r], t->acc + (gidx)r * s->stride};
    if (job->from[row.query] >= job->first) {
      memcpy(sum.acc, more.acc, (size_t)s->stride * sizeof *sum.acc);
      sum.m = more.m, sum.l = more.l;
    } else
      s->loops->join(s->stride, &sum, &more);
    job->m[at] = sum.m, job->l[at] = sum.l;
  }
}

/* Run a tile: rows first .. first + ATTENTION_ROWS - 1 of the rows that share head kv_head of k. */
static void tile_run(const struct shard *s, idx kv_head, gidx first)
{
  const struct attention_job *job = s->job;
  const struct attention *a = job->attention;
  _Alignas(64) float q[ATTENTION_ROWS * MAX_HEAD_COLUMNS], acc[ATTENTION_ROWS * MAX_HEAD_COLUMNS];
  gidx rows = (gidx)job->n * (a->heads / a->kv_heads), place = (gidx)kv_head * s->blocks;
  struct attention_tile t = {.factors = attention_factors(a),
                             .d = a->d,
                             .stride = s->stride,
                             .q = q,
                             .k = s->k + place * a->d * ATTENTION_BLOCK,
                             .v = s->v + place * ATTENTION_BLOCK * s->stride,
                             .acc = acc};
  int sees = 0;
  for (idx r = 0; r < ATTENTION_ROWS; r++) {
    struct row row = row_of(a, kv_head, imin(first + r, rows - 1));
    memcpy(q + (gidx)r * a->d, job->q + ((gidx)row.query * a->heads + row.head) * a->d,
           (size_t)a->d * sizeof *q);
    gidx from = imax(job->from[row.query] - job->first, 0);
    gidx end = imin(job->end[row.query] - job->first, job->count);
    if (first + r >= rows || from >= end) continue;
    t.from[r] = (idx)from, t.end[r] = (idx)end;
    sees = 1;
  }
  if (!sees) return;
  s->loops->tile(&t);
  tile_store(s, kv_head, first, &t);
}

int cpu_attention(struct device *dev, const struct attention_job *job)
{
  struct cpu_state *cpu = cpu_of(dev);
  const struct attention *a = job->attention;
  int threads = cpu->options.threads;
  struct shard s = {.job = job, .loops = cpu->attention};
  if (!s.loops) TRY(device_check_fma());
  s.stride = attention_stride(a->dv);
  s.blocks = (idx)ceil_div(job->count, ATTENTION_BLOCK);
  gidx block = (gidx)a->kv_heads * s.blocks * ATTENTION_BLOCK;
  TRY(array_reserve(&cpu->shard, &cpu->shard_values, block * (a->d + s.stride),
                    sizeof *cpu->shard));
  s.k = cpu->shard;
  s.v = s.k + block * a->d;
  gidx packs = (gidx)a->kv_heads * s.blocks;
  gidx tiles = ceil_div((gidx)job->n * (a->heads / a->kv_heads), ATTENTION_ROWS);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static)
    for (gidx i = 0; i < packs; i++) block_pack(&s, (idx)(i / s.blocks), (idx)(i % s.blocks));
#pragma omp for schedule(dynamic, 8)
    for (gidx i = 0; i < a->kv_heads * tiles; i++)
      tile_run(&s, (idx)(i / tiles), i % tiles * ATTENTION_ROWS);
  }
  return OK;
}
