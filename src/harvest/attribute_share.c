/* SPDX-License-Identifier: BSD-3-Clause
 * The sums of all queries first, since a weight is relative to all that its query sees; then the
 * shards once more, whose keys and values are turned, so that positions lie side by side.  Inner
 * products of values and an atom are the same for all queries that have it, and are made once. */
#include "harvest/attribute_share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

enum { BLOCK = ATTENTION_BLOCK, SLOTS = 4096 };
#define FAR 1e-3 /* relative: no rounding, but another row */

int attributed_share_alloc(struct attributed_share *s, idx queries)
{
  const struct attention *a = &s->task->capture->attention;
  gidx cells = (gidx)ATTENTION_SHARD * a->kv_heads;
  s->rows = (struct harvest_task){.capture = s->task->capture, .device = s->task->device};
  s->harvest.task = &s->rows;
  s->harvest.share = queries;
  TRY(harvest_share_alloc(&s->harvest));
  TRY(arena_alloc(&s->harvest.arena, &s->k, cells * a->d, sizeof *s->k));
  TRY(arena_alloc(&s->harvest.arena, &s->v, cells * a->dv, sizeof *s->v));
  TRY(arena_alloc(&s->harvest.arena, &s->atom_of, s->task->atoms->k, sizeof *s->atom_of));
  return arena_alloc(&s->harvest.arena, &s->slot_of, s->task->atoms->k, sizeof *s->slot_of);
}

void attributed_share_free(struct attributed_share *s)
{
  supports_free(&s->supports);
  arena_free(&s->harvest.arena);
  free(s->top.row);
  free(s->top.code);
  free(s->part);
  free(s->product);
  free(s->sum);
}

/* Room for the pairs of a share, with empty lists. */
static int pairs_begin(struct attributed_share *s, gidx pairs)
{
  idx top = s->task->top, heads = s->task->capture->attention.heads;
  gidx values = pairs * top;
  CHECK(pairs <= INT32_MAX / top, ERR_MEMORY,
        "%lld atoms of the rows at a time with %d contributions each are too many: lower --block",
        (long long)pairs, top);
  s->top.k = (idx)pairs, s->top.r = top;
  TRY(array_reserve(&s->top.row, &s->list_room, values, sizeof *s->top.row));
  TRY(array_reserve(&s->top.code, &s->code_room, values, sizeof *s->top.code));
  TRY(array_reserve(&s->part, &s->part_room, pairs * heads, sizeof *s->part));
  TRY(array_reserve(&s->sum, &s->sum_room, pairs, sizeof *s->sum));
  for (gidx i = 0; i < values; i++) s->top.row[i] = -1, s->top.code[i] = 0;
  for (gidx i = 0; i < pairs * heads; i++) s->part[i] = 0;
  return OK;
}

/* A run of queries of one sequence, the shard that they look at, and one head. */
struct shard {
  struct attributed_share *share;
  struct attention_factors factors;
  gidx first;        /* position where the shard begins */
  idx count, blocks; /* positions, and runs of BLOCK of them */
  idx at, n;         /* queries of the share */
  idx slots;         /* atoms that they have */
  idx head;
};

/* out[columns][BLOCK] <- a head's cells of a block; what is not there is 0. */
static void cells_turn(const struct shard *w, const float *in, idx columns, idx head, idx block,
                       float *out)
{
  const struct attention *a = &w->share->task->capture->attention;
  for (idx j = 0; j < BLOCK; j++) {
    gidx at = (gidx)block * BLOCK + j;
    const float *from = in + (at * a->kv_heads + head) * columns;
    for (idx c = 0; c < columns; c++) out[(gidx)c * BLOCK + j] = at < w->count ? from[c] : 0;
  }
}

static void block_turn(void *self, gidx i)
{
  const struct shard *w = self;
  struct attributed_share *s = w->share;
  const struct attention *a = &s->task->capture->attention;
  idx head = (idx)(i / w->blocks), block = (idx)(i % w->blocks);
  cells_turn(w, s->harvest.k, a->d, head, block, s->k + i * a->d * BLOCK);
  cells_turn(w, s->harvest.v, a->dv, head, block, s->v + i * a->dv * BLOCK);
}

/* What a query sees of the shard: *from .. *end - 1, counted from its start. */
static void seen_here(const struct shard *w, idx query, gidx *from, gidx *end)
{
  const struct harvest *h = &w->share->harvest;
  *from = imax(h->from[query] - w->first, 0);
  *end = imin(h->end[query] - w->first, w->count);
}

/* Take queries from w->at on, of at most so many, until they have SLOTS atoms: w->n, w->slots, and
 * of each atom its slot and what is seen by the queries that have it. */
static void queries_take(struct shard *w, idx most)
{
  struct attributed_share *s = w->share;
  const gidx *start = s->supports.view.start;
  s->stamp++;
  w->slots = 0;
  for (w->n = 0; w->n < most && w->slots < SLOTS; w->n++) {
    idx query = w->at + w->n;
    gidx from, end;
    seen_here(w, query, &from, &end);
    for (gidx e = start[query]; from < end && e < start[query + 1]; e++) {
      struct atom_slot *a = &s->slot_of[s->supports.view.atoms[e]];
      if (a->stamp != s->stamp) {
        *a = (struct atom_slot){s->stamp, w->slots, (idx)from, (idx)end};
        s->atom_of[w->slots++] = s->supports.view.atoms[e];
      }
      a->from = (idx)imin(a->from, from);
      a->end = (idx)imax(a->end, end);
    }
  }
}

/* Products of a slot's atom with all values that are seen with it, a block at a time. */
static void slot_run(void *self, gidx slot)
{
  const struct shard *w = self;
  struct attributed_share *s = w->share;
  const struct attention *a = &s->task->capture->attention;
  const struct atom_slot *of = &s->slot_of[s->atom_of[slot]];
  const float *atom = s->atoms + (gidx)s->atom_of[slot] * a->heads * a->dv + (gidx)w->head * a->dv;
  gidx head = (gidx)(w->head / (a->heads / a->kv_heads)) * w->blocks;
  for (gidx b = of->from / BLOCK; b * BLOCK < of->end; b++) {
    const float *v = s->v + (head + b) * a->dv * BLOCK;
    real *out = s->product + (slot * w->blocks + b) * BLOCK;
    for (idx j = 0; j < BLOCK; j++) out[j] = 0;
    for (idx c = 0; c < a->dv; c++, v += BLOCK) {
      real d = atom[c];
      for (idx j = 0; j < BLOCK; j++) out[j] += (real)v[j] * d;
    }
  }
}

/* weight[from .. end - 1] of a block by (N.28). */
static void weights_find(const struct shard *w, idx query, gidx block, idx from, idx end,
                         real *weight)
{
  const struct harvest *h = &w->share->harvest;
  const struct attention *a = &w->share->task->capture->attention;
  gidx at = (gidx)query * a->heads + w->head, kv_head = w->head / (a->heads / a->kv_heads);
  const float *q = h->q + at * a->d,
              *k = w->share->k + (kv_head * w->blocks + block) * a->d * BLOCK;
  float u[BLOCK] = {0};
  for (idx c = 0; c < a->d; c++, k += BLOCK)
    for (idx j = from; j < end; j++) u[j] = fmaf(q[c], k[j], u[j]);
  for (idx j = from; j < end; j++) {
    float score = attention_cap(&w->factors, u[j]);
    weight[j] = attribution_weight(&w->factors, score, h->m[at], h->l[at]);
  }
}

/* Add what a pair gets from a head in a block. */
static void pair_add(const struct shard *w, gidx pair, gidx block, idx from, idx end,
                     const real *weight)
{
  struct attributed_share *s = w->share;
  gidx heads = s->task->capture->attention.heads, position = w->first + block * BLOCK;
  gidx slot = s->slot_of[s->supports.view.atoms[pair]].slot;
  const real *product = s->product + (slot * w->blocks + block) * BLOCK;
  const float *weakest = s->top.code + (pair + 1) * s->top.r - 1;
  real part = s->part[pair * heads + w->head];
  for (idx j = from; j < end; j++) {
    real own = weight[j] * product[j];
    float value = (float)own;
    part += own;
    if (fabsf(value) < fabsf(*weakest)) continue; /* most are turned away here */
    top_add(&s->top, (idx)pair, (position + j) * heads + w->head, value);
  }
  s->part[pair * heads + w->head] = part;
}

/* Query i of the run: all its blocks and pairs. */
static void query_run(void *self, gidx i)
{
  const struct shard *w = self;
  const gidx *start = w->share->supports.view.start;
  idx query = w->at + (idx)i;
  gidx from, end;
  real weight[BLOCK];
  if (start[query] == start[query + 1]) return;
  seen_here(w, query, &from, &end);
  for (gidx b = from / BLOCK; b * BLOCK < end; b++) {
    idx low = (idx)imax(from - b * BLOCK, 0), high = (idx)imin(end - b * BLOCK, BLOCK);
    weights_find(w, query, b, low, high, weight);
    for (gidx e = start[query]; e < start[query + 1]; e++) pair_add(w, e, b, low, high, weight);
  }
}

/* Queries at .. at + n - 1 of the share over one shard, as many at a time as have SLOTS atoms. */
static int shard_run(struct shard *w, idx at, idx n)
{
  struct attributed_share *s = w->share;
  for (w->at = at; w->at < at + n; w->at += w->n) {
    queries_take(w, at + n - w->at);
    TRY(array_reserve(&s->product, &s->product_room, (gidx)w->slots * w->blocks * BLOCK,
                      sizeof *s->product));
    for (w->head = 0; w->slots && w->head < s->task->capture->attention.heads; w->head++) {
      team_run(s->task->threads, w->slots, slot_run, w);
      team_run(s->task->threads, w->n, query_run, w);
    }
  }
  return OK;
}

/* Queries at .. at + n - 1 of the share, which are of one sequence. */
static int sequence_run(struct attributed_share *s, gidx sequence, idx at, idx n)
{
  const struct capture_source *c = s->task->capture;
  const struct harvest *h = &s->harvest;
  gidx least = c->length[sequence], most = 0;
  for (idx i = at; i < at + n; i++) {
    if (h->from[i] == h->end[i]) continue;
    least = imin(least, h->from[i]);
    most = imax(most, h->end[i]);
  }
  for (gidx j = least / ATTENTION_SHARD * ATTENTION_SHARD; j < most; j += ATTENTION_SHARD) {
    idx count = (idx)imin(ATTENTION_SHARD, most - j);
    struct shard w = {.share = s,
                      .factors = attention_factors(&c->attention),
                      .first = j,
                      .count = count,
                      .blocks = (idx)ceil_div(count, BLOCK)};
    TRY(c->positions(c->self, sequence, j, count, h->k, h->v));
    team_run(s->task->threads, (gidx)c->attention.kv_heads * w.blocks, block_turn, &w);
    TRY(shard_run(&w, at, n));
  }
  return OK;
}

/* What the contributions of a pair have to sum to. */
struct wanted {
  real value;
  real size;   /* of its terms: what rounding is relative to */
  int is_zero; /* at most: the routed score is a positive part */
};

static struct wanted wanted_find(const struct attributed_share *s, gidx row, gidx pair,
                                 int is_compared)
{
  const struct attention *a = &s->task->capture->attention;
  gidx p = (gidx)a->heads * a->dv, atom = s->supports.view.atoms[pair];
  const float *x = s->harvest.rows + row * p, *d = s->atoms + atom * p;
  struct wanted w = {0, 0, 0};
  for (gidx c = 0; c < p; c++) {
    w.value += (real)x[c] * (real)d[c];
    w.size += fabs((real)x[c] * (real)d[c]);
  }
  if (!is_compared) return w;
  real score = s->supports.score[pair];
  w.value = score + s->mean[atom];
  w.size += fabs(score) + fabs(s->mean[atom]);
  w.is_zero = s->task->nonnegative && score == 0;
  return w;
}

/* Compare the sum of a pair of a row of the share. */
static int pair_check(struct attributed_share *s, gidx row, gidx pair, gidx first)
{
  const struct support_source *supports = s->task->supports;
  int is_compared = pair - s->supports.view.start[row] < s->task->compared;
  struct wanted w = wanted_find(s, row, pair, is_compared);
  real off = s->sum[pair] - w.value;
  off = w.is_zero ? fmax(off, 0) : fabs(off);
  s->compared += is_compared;
  s->beyond += off > ATTRIBUTION_CLOSE * fabs(w.value);
  s->error = fmax(s->error, w.size > 0 ? off / w.size : 0);
  idx atom = s->supports.view.atoms[pair];
  CHECK(!is_compared || off <= FAR * w.size, ERR_INPUT,
        "row %lld of '%s' has the score %.6g on atom %d, and by '%s' it is %.6g: give the capture "
        "whose rows were encoded, and the dictionary, with --normalize where encode had it",
        (long long)(first + row), supports->name, (real)s->supports.score[pair], atom,
        s->task->capture->name, s->sum[pair] - s->mean[atom]);
  return OK;
}

/* sum <- the sums of the heads; *key <- the row that does not fit. */
static int sums_finish(struct attributed_share *s, gidx first, idx count, gidx *key)
{
  const struct support_view *view = &s->supports.view;
  idx heads = s->task->capture->attention.heads;
  for (gidx i = 0; i < count; i++) {
    *key = first + i;
    for (gidx e = view->start[i]; e < view->start[i + 1]; e++) {
      s->sum[e] = 0;
      for (idx h = 0; h < heads; h++) s->sum[e] += s->part[e * heads + h];
      TRY(pair_check(s, i, e, first));
    }
    gidx from = view->start[i], length = view->start[i + 1] - from;
    s->support_terms += support_terms(view->atoms + from, 1, (idx)length, first + i);
  }
  return OK;
}

int attributed_share_run(struct attributed_share *s, gidx first, idx count, gidx *key)
{
  const struct capture_source *c = s->task->capture;
  gidx p = (gidx)c->attention.heads * c->attention.dv;
  *key = first;
  supports_free(&s->supports);
  s->top.k = 0;
  if (!count) return OK;
  TRY(harvest_share_run(&s->harvest, first, count, key));
  s->row_terms += items_terms(s->harvest.rows, count, p, first);
  TRY(supports_load(&s->supports, s->task->supports, first, count, 1));
  s->longest = imax(s->longest, s->supports.longest);
  TRY(pairs_begin(s, s->supports.view.start[count]));
  gidx sequence = harvest_sequence(c, first);
  for (idx at = 0; at < count; sequence++) {
    idx n = (idx)(imin(c->start[sequence + 1], first + count) - first) - at;
    TRY(sequence_run(s, sequence, at, n));
    at += n;
  }
  return sums_finish(s, first, count, key);
}
