/* SPDX-License-Identifier: BSD-3-Clause
 * The sums over a shard do not depend on other shards, so ranks make them in parallel.  Rank 0
 * joins the sums of each query by ascending shards, as a single rank does.  Nothing is joined
 * earlier, since the order of joining matters. */
#include "harvest/positions.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/attention.h"

/* PART_BYTES: limits the parts of a block on rank 0.  Dividing positions pays if each rank then
 * has at least SHARDS_EACH shards, and would otherwise have fewer than FEW_QUERIES queries. */
enum { PART_BYTES = 256 << 20, FEW_QUERIES = 64, SHARDS_EACH = 2 };

/* A shard of positions, with the queries of its sequence.  The sum of one query over one shard is a
 * part. */
struct part {
  gidx sequence;
  gidx first;  /* position where the shard begins */
  gidx end;    /* end of the positions of the shard that the queries see */
  gidx query;  /* number of the first query, among all */
  idx at, n;   /* queries at .. at + n - 1 of the block */
  gidx places; /* number of parts of all earlier shards */
};

struct positions {
  struct part *list; /* [n] of a block; owned */
  gidx room;
  gidx n;
  gidx *from; /* [block] for each query, the first position that it sees of the shard in work */
  float *m, *l, *acc;             /* [parts of this rank][heads], .. [stride] */
  float *all_m, *all_l, *all_acc; /* [parts] on rank 0 */
  gidx m_room, l_room, acc_room, all_m_room, all_l_room, all_acc_room;
  idx *counts; /* [size] parts of each rank */
};

static gidx scatter_floats(const struct attention *a)
{
  return (gidx)a->heads * (attention_stride(a->dv) + 2);
}

int positions_pay(const struct capture_source *s, int ranks)
{
  gidx shards = 0;
  for (gidx i = 0; i < s->sequences; i++)
    if (s->start[i + 1] > s->start[i]) {
      gidx seen = s->attention.window ? imin(s->attention.window, s->length[i]) : s->length[i];
      shards += ceil_div(seen, ATTENTION_SHARD);
    }
  return s->n < (gidx)FEW_QUERIES * ranks && shards >= (gidx)SHARDS_EACH * ranks;
}

int positions_alloc(struct harvest *h)
{
  TRY(struct_alloc(&h->positions, sizeof *h->positions));
  TRY(arena_alloc(&h->arena, &h->positions->counts, h->c->size, sizeof *h->positions->counts));
  return arena_alloc(&h->arena, &h->positions->from, h->block, sizeof *h->positions->from);
}

void positions_free(struct harvest *h)
{
  struct positions *p = h->positions;
  if (!p) return;
  free(p->list), free(p->m), free(p->l), free(p->acc);
  free(p->all_m), free(p->all_l), free(p->all_acc);
  free(p);
}

/* List the shards of some queries; list NULL: only count.  *places <- the number of their parts. */
static gidx parts_list(const struct harvest *h, gidx first, gidx n, struct part *list, gidx *places)
{
  const struct capture_source *s = h->task->capture;
  gidx sequence = harvest_sequence(s, first), count = 0;
  *places = 0;
  for (gidx at = 0; at < n; sequence++) {
    gidx mine = imin(s->start[sequence + 1], first + n) - first - at, least, most;
    harvest_seen(s, sequence, first + at, mine, &least, &most);
    for (gidx j = least / ATTENTION_SHARD * ATTENTION_SHARD; j < most; j += ATTENTION_SHARD) {
      if (list)
        list[count] = (struct part){.sequence = sequence,
                                    .first = j,
                                    .end = imin(j + ATTENTION_SHARD, most),
                                    .query = first + at,
                                    .at = (idx)at,
                                    .n = (idx)mine,
                                    .places = *places};
      count++;
      *places += mine;
    }
    at += mine;
  }
  return count;
}

int positions_count(struct harvest *h, gidx first, gidx *n)
{
  struct positions *p = h->positions;
  const struct attention *a = &h->task->capture->attention;
  gidx most = PART_BYTES / (scatter_floats(a) * (gidx)sizeof(float)), places;
  *n = imin(h->task->capture->n - first, h->block);
  while (p->n = parts_list(h, first, *n, NULL, &places), places > most && *n > 1) *n /= 2;
  CHECK(places <= INT32_MAX, ERR_MEMORY, "a query has %lld parts", (long long)places);
  TRY(array_reserve(&p->list, &p->room, p->n, sizeof *p->list));
  parts_list(h, first, *n, p->list, &places);
  return OK;
}

/* Add a shard on a GPU; its sums go to the rows from `place` on. */
static int part_add(struct harvest *h, const struct part *t, gidx place)
{
  const struct attention *a = &h->task->capture->attention;
  struct positions *p = h->positions;
  const struct piece piece = {.sequence = t->sequence,
                              .first = t->first,
                              .count = (idx)(t->end - t->first),
                              .query = t->query,
                              .n = t->n,
                              .from = h->from + t->at,
                              .end = h->end + t->at,
                              .q = h->q + (gidx)t->at * a->heads * a->d,
                              .m = p->m + place,
                              .l = p->l + place,
                              .acc = p->acc + place * attention_stride(a->dv)};
  return pieces_add(h->pieces, &piece);
}

/* Run shards first .. first + count - 1 of the list.  Their parts are stored from the beginning of
 * p->m, p->l and p->acc on. */
static int parts_run(struct harvest *h, gidx first, gidx count)
{
  const struct capture_source *s = h->task->capture;
  const struct attention *a = &s->attention;
  struct positions *p = h->positions;
  for (gidx i = first; i < first + count; i++) {
    const struct part *t = &p->list[i];
    gidx row = (gidx)t->at * a->heads, place = (t->places - p->list[first].places) * a->heads;
    if (h->pieces) {
      TRY(part_add(h, t, place));
      continue;
    }
    for (idx q = 0; q < t->n; q++) p->from[q] = imax(h->from[t->at + q], t->first);
    const struct attention_job job = {.attention = a,
                                      .n = t->n,
                                      .q = h->q + row * a->d,
                                      .from = p->from,
                                      .end = h->end + t->at,
                                      .first = t->first,
                                      .count = (idx)(t->end - t->first),
                                      .k = h->k,
                                      .v = h->v,
                                      .m = p->m + place,
                                      .l = p->l + place,
                                      .acc = p->acc + place * attention_stride(a->dv)};
    TRY(s->positions(s->self, t->sequence, t->first, job.count, h->k, h->v));
    TRY(device_attention(h->task->device, &job));
  }
  return h->pieces ? pieces_flush(h->pieces) : OK;
}

/* m, l, acc of each query <- the sum of its parts, joined by ascending shards. */
static void parts_join(struct harvest *h)
{
  const struct attention *a = &h->task->capture->attention;
  struct positions *p = h->positions;
  gidx stride = attention_stride(a->dv);
  for (gidx i = 0; i < p->n; i++)
    for (gidx r = 0; r < (gidx)p->list[i].n * a->heads; r++) {
      const struct part *t = &p->list[i];
      gidx query = t->at + r / a->heads, to = (gidx)t->at * a->heads + r;
      gidx from = t->places * a->heads + r;
      if (h->from[query] >= t->end || h->end[query] <= t->first) continue;
      struct attention_sum sum = {h->m[to], h->l[to], h->acc + to * stride};
      const struct attention_sum more = {p->all_m[from], p->all_l[from],
                                         p->all_acc + from * stride};
      if (h->from[query] >= t->first) {
        memcpy(sum.acc, more.acc, (size_t)a->dv * sizeof *sum.acc);
        sum.m = more.m, sum.l = more.l;
      } else
        attention_sum_join(a, &sum, &more);
      h->m[to] = sum.m, h->l[to] = sum.l;
    }
}

static int parts_reserve(struct harvest *h, gidx mine, gidx all)
{
  const struct attention *a = &h->task->capture->attention;
  struct positions *p = h->positions;
  gidx stride = attention_stride(a->dv);
  mine *= a->heads;
  all *= h->c->rank ? 0 : a->heads;
  TRY(array_reserve(&p->m, &p->m_room, mine, sizeof *p->m));
  TRY(array_reserve(&p->l, &p->l_room, mine, sizeof *p->l));
  TRY(array_reserve(&p->acc, &p->acc_room, mine * stride, sizeof *p->acc));
  TRY(array_reserve(&p->all_m, &p->all_m_room, all, sizeof *p->all_m));
  TRY(array_reserve(&p->all_l, &p->all_l_room, all, sizeof *p->all_l));
  return array_reserve(&p->all_acc, &p->all_acc_room, all * stride, sizeof *p->all_acc);
}

/* The number of parts before shard number `part`. */
static gidx offset_of(const struct positions *p, gidx part)
{
  return part < p->n ? p->list[part].places
         : p->n      ? p->list[p->n - 1].places + p->list[p->n - 1].n
                     : 0;
}

/* Run this rank's shards, for queries first .. first + n - 1. */
static int own_run(struct harvest *h, gidx first, gidx n, gidx begin, gidx count)
{
  const struct capture_source *s = h->task->capture;
  struct positions *p = h->positions;
  gidx mine = offset_of(p, begin + count) - offset_of(p, begin);
  TRY(parts_reserve(h, mine, offset_of(p, p->n)));
  TRY(s->queries(s->self, first, (idx)n, h->q));
  return parts_run(h, begin, count);
}

int positions_run(struct harvest *h, gidx first, gidx n, gidx *key)
{
  const struct attention *a = &h->task->capture->attention;
  struct positions *p = h->positions;
  gidx begin = 0, count = 0, from, some, stride = attention_stride(a->dv);
  *key = first;
  harvest_seen_all(h, first, n);
  for (int r = 0; r < h->c->size; r++) {
    comm_partition(p->n, h->c->size, r, &from, &some);
    p->counts[r] = (idx)(offset_of(p, from + some) - offset_of(p, from));
    if (r == h->c->rank) begin = from, count = some;
  }
  TRY(comm_agree(h->c, own_run(h, first, n, begin, count)));
  size_t row = (size_t)a->heads * sizeof *p->m;
  TRY(comm_gather(h->c, p->m, p->counts, row, p->all_m));
  TRY(comm_gather(h->c, p->l, p->counts, row, p->all_l));
  TRY(comm_gather(h->c, p->acc, p->counts, row * (size_t)stride, p->all_acc));
  if (h->c->rank) return OK;
  parts_join(h);
  return harvest_partition_finish(h, first, (idx)n, key);
}
