/* SPDX-License-Identifier: BSD-3-Clause
 * Attribution on the CPU.  The keys and values of a shard are transposed, so that positions are
 * adjacent.  The inner products of the values with an atom are the same for all queries that have
 * the atom, so they are computed once per run of queries.  Threads then take queries. */
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "device/attribution.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/cpu.h"

enum { BLOCK = ATTENTION_BLOCK, SLOTS = 4096 };

/* Where the products of an atom are, if a query of the current run has the atom. */
struct atom_slot {
  gidx stamp; /* number of the run; an older one means that the atom is not in the run */
  idx slot;
  idx from, end; /* positions of the shard that the queries with this atom see */
};

struct attribution_work {
  float *k, *v;              /* [kv_heads][blocks][d][64], [kv_heads][blocks][dv][64] */
  struct atom_slot *slot_of; /* [n_atoms] */
  idx *atom_of;              /* [n_atoms] the atom of each slot */
  real *product;             /* [slots][blocks][64] for one head */
  gidx k_room, v_room, slot_room, atom_room, product_room, stamp;
};

void attribution_work_free(struct attribution_work *w)
{
  if (!w) return;
  free(w->k), free(w->v), free(w->slot_of), free(w->atom_of), free(w->product);
  free(w);
}

/* A run of consecutive queries, and one head. */
struct run {
  const struct attribution_job *job;
  const struct attention_loops *loops;
  struct attribution_work *work;
  struct attention_factors factors;
  int threads;
  idx blocks; /* of BLOCK positions */
  idx at, n;  /* the run is queries at .. at + n - 1 */
  idx slots;  /* number of distinct atoms of these queries */
  idx head;
};

static int work_reserve(struct run *r)
{
  const struct attribution_job *job = r->job;
  const struct attention *a = job->attention;
  struct attribution_work *w = r->work;
  gidx cells = (gidx)r->blocks * BLOCK * a->kv_heads, slots = w->slot_room;
  TRY(array_reserve(&w->k, &w->k_room, cells * a->d, sizeof *w->k));
  TRY(array_reserve(&w->v, &w->v_room, cells * a->dv, sizeof *w->v));
  TRY(array_reserve(&w->slot_of, &w->slot_room, job->n_atoms, sizeof *w->slot_of));
  for (gidx i = 0; slots < w->slot_room && i < w->slot_room; i++) w->slot_of[i].stamp = 0;
  return array_reserve(&w->atom_of, &w->atom_room, job->n_atoms, sizeof *w->atom_of);
}

/* out[columns][BLOCK] <- the cells of a head in a block; positions past the end are 0. */
static void cells_transpose(const struct attribution_job *job, const float *in, idx columns,
                            idx head, idx block, float *out)
{
  for (idx j = 0; j < BLOCK; j++) {
    gidx at = (gidx)block * BLOCK + j;
    const float *from = in + (at * job->attention->kv_heads + head) * columns;
    for (idx c = 0; c < columns; c++) out[(gidx)c * BLOCK + j] = at < job->count ? from[c] : 0;
  }
}

static void shard_transpose(const struct run *r)
{
  const struct attention *a = r->job->attention;
#pragma omp parallel for num_threads(r->threads)
  for (gidx i = 0; i < (gidx)a->kv_heads * r->blocks; i++) {
    idx head = (idx)(i / r->blocks), block = (idx)(i % r->blocks);
    cells_transpose(r->job, r->job->k, a->d, head, block, r->work->k + i * a->d * BLOCK);
    cells_transpose(r->job, r->job->v, a->dv, head, block, r->work->v + i * a->dv * BLOCK);
  }
}

/* The positions *from .. *end - 1 that a query sees, counted from the start of the shard. */
static void seen_here(const struct attribution_job *job, idx query, gidx *from, gidx *end)
{
  *from = imax(job->from[query] - job->first, 0);
  *end = imin(job->end[query] - job->first, job->count);
}

/* Make a run: take queries from r->at on until they have SLOTS atoms or more.  Sets r->n and
 * r->slots, and for each atom its slot and the positions that its queries see. */
static void queries_take(struct run *r)
{
  const struct attribution_job *job = r->job;
  struct attribution_work *w = r->work;
  w->stamp++;
  r->slots = 0;
  for (r->n = 0; r->n < job->n - r->at && r->slots < SLOTS; r->n++) {
    idx query = r->at + r->n;
    gidx from, end;
    seen_here(job, query, &from, &end);
    for (gidx e = job->start[query]; from < end && e < job->start[query + 1]; e++) {
      struct atom_slot *a = &w->slot_of[job->atom_of[e]];
      if (a->stamp != w->stamp) {
        *a = (struct atom_slot){w->stamp, r->slots, (idx)from, (idx)end};
        w->atom_of[r->slots++] = job->atom_of[e];
      }
      a->from = (idx)imin(a->from, from);
      a->end = (idx)imax(a->end, end);
    }
  }
}

/* Inner products of the atom of a slot with all values that its queries see, block by block. */
static void slot_run(const struct run *r, idx slot)
{
  const struct attention *a = r->job->attention;
  struct attribution_work *w = r->work;
  const struct atom_slot *of = &w->slot_of[w->atom_of[slot]];
  const float *atom = r->job->atoms + ((gidx)w->atom_of[slot] * a->heads + r->head) * a->dv;
  gidx head = (gidx)(r->head / (a->heads / a->kv_heads)) * r->blocks;
  for (gidx b = of->from / BLOCK; b * BLOCK < of->end; b++)
    r->loops->products(a->dv, atom, w->v + (head + b) * a->dv * BLOCK,
                       w->product + ((gidx)slot * r->blocks + b) * BLOCK);
}

/* weight[BLOCK] <- the weights of a query in a block, by (N.28). */
static void weights_find(const struct run *r, idx query, gidx block, real *weight)
{
  const struct attribution_job *job = r->job;
  const struct attention *a = job->attention;
  _Alignas(64) float power[BLOCK];
  gidx at = (gidx)query * a->heads + r->head, kv_head = r->head / (a->heads / a->kv_heads);
  r->loops->weights(&r->factors, a->d, job->q + at * a->d,
                    r->work->k + (kv_head * r->blocks + block) * a->d * BLOCK, job->m[at], power);
  for (idx j = 0; j < BLOCK; j++) weight[j] = (real)power[j] / (real)job->l[at];
}

/* Add the contributions of the head at positions from .. end - 1 of a block to a pair. */
static void pair_add(const struct run *r, gidx pair, gidx block, idx from, idx end,
                     const real *weight)
{
  const struct attribution_job *job = r->job;
  gidx heads = job->attention->heads, position = job->first + block * BLOCK;
  gidx slot = r->work->slot_of[job->atom_of[pair]].slot;
  const real *product = r->work->product + (slot * r->blocks + block) * BLOCK;
  const float *weakest = job->top->code + (pair + 1) * job->top->r - 1;
  real part = job->part[pair * heads + r->head];
  for (idx j = from; j < end; j++) {
    real own = weight[j] * product[j];
    float value = (float)own;
    part += own;
    if (fabsf(value) < fabsf(*weakest)) continue; /* true for most positions */
    top_add(job->top, (idx)pair, (position + j) * heads + r->head, value);
  }
  job->part[pair * heads + r->head] = part;
}

/* All blocks and pairs of one query. */
static void query_run(const struct run *r, idx query)
{
  const gidx *start = r->job->start;
  gidx from, end;
  real weight[BLOCK];
  if (start[query] == start[query + 1]) return;
  seen_here(r->job, query, &from, &end);
  for (gidx b = from / BLOCK; b * BLOCK < end; b++) {
    idx low = (idx)imax(from - b * BLOCK, 0), high = (idx)imin(end - b * BLOCK, BLOCK);
    weights_find(r, query, b, weight);
    for (gidx e = start[query]; e < start[query + 1]; e++) pair_add(r, e, b, low, high, weight);
  }
}

static void head_run(const struct run *r)
{
#pragma omp parallel num_threads(r->threads)
  {
#pragma omp for schedule(dynamic, 8)
    for (idx slot = 0; slot < r->slots; slot++) slot_run(r, slot);
#pragma omp for schedule(dynamic, 4)
    for (idx i = 0; i < r->n; i++) query_run(r, r->at + i);
  }
}

int cpu_attribution(struct device *dev, const struct attribution_job *job)
{
  struct cpu_state *cpu = cpu_of(dev);
  struct run r = {.job = job,
                  .loops = cpu->attention,
                  .factors = attention_factors(job->attention),
                  .threads = cpu->options.threads,
                  .blocks = (idx)ceil_div(job->count, BLOCK)};
  if (!r.loops) TRY(device_check_fma());
  if (!cpu->attribution) TRY(struct_alloc(&cpu->attribution, sizeof *cpu->attribution));
  r.work = cpu->attribution;
  TRY(work_reserve(&r));
  shard_transpose(&r);
  for (; r.at < job->n; r.at += r.n) {
    queries_take(&r);
    TRY(array_reserve(&r.work->product, &r.work->product_room, (gidx)r.slots * r.blocks * BLOCK,
                      sizeof *r.work->product));
    for (r.head = 0; r.slots && r.head < job->attention->heads; r.head++) head_run(&r);
  }
  return OK;
}
