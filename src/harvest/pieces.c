/* SPDX-License-Identifier: BSD-3-Clause
 * Pieces wait on the host until there is no room for the next one; then all go to the device, and
 * their sums come back. */
#include "harvest/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/attention.h"
#include "harvest/held.h"

/* Bytes of keys and values on the device at a time, unless they are more than a part of what is
 * free. */
enum { PIECES_BYTES = 256 << 20, PART = 4 };

struct pieces {
  const struct capture_source *capture;
  struct device *device;
  gidx room, queries;         /* positions and queries, at most */
  gidx n, n_cells, n_queries; /* pieces that wait, their positions and queries */
  struct buffer k, v;         /* [room][kv_heads][columns] */
  struct buffer q, m, l, acc; /* [queries][heads] and so on */
  struct piece *list;         /* [queries] */
  gidx *start, *at, *length;  /* [queries + 1] the plan of a device */
  gidx *cell;
  int *goes_on;
  struct arena arena;
};

static gidx cell_bytes(const struct attention *a)
{
  return (gidx)a->kv_heads * (a->d + a->dv) * (gidx)sizeof(float);
}

static gidx query_bytes(const struct attention *a)
{
  return (gidx)a->heads * (a->d + attention_stride(a->dv) + 2) * (gidx)sizeof(float);
}

/* *room <- positions on the device at a time: all, or as many as pay and fit. */
static int room_find(const struct capture_source *s, struct device *device, idx queries, gidx *room)
{
  const struct attention *a = &s->attention;
  gidx all = 0, available, least = ATTENTION_SHARD * cell_bytes(a) + queries * query_bytes(a);
  for (gidx i = 0; i < s->sequences; i++) all += s->length[i];
  TRY(buffer_bytes_available(device, &available));
  CHECK(least <= available, ERR_MEMORY,
        "keys and values of %d positions of '%s' and %d queries take %.1f MB, and %.1f MB are free "
        "on the GPU: use '--device cpu', or a smaller '--block'",
        ATTENTION_SHARD, s->name, queries, 1e-6 * (double)least, 1e-6 * (double)imax(available, 0));
  gidx bytes = imin(PIECES_BYTES, available / PART);
  all = ceil_div(imax(all, 1), ATTENTION_SHARD);
  *room = imax(imin(all, bytes / cell_bytes(a) / ATTENTION_SHARD), 1) * ATTENTION_SHARD;
  return OK;
}

int pieces_check(const struct capture_source *s, struct device *device, idx queries)
{
  gidx room;
  TRY(held_heads_check(s, device, 0, CAPTURE_F32));
  return room_find(s, device, queries, &room);
}

static int plan_alloc(struct pieces *p)
{
  TRY(arena_alloc(&p->arena, &p->list, p->queries, sizeof *p->list));
  TRY(arena_alloc(&p->arena, &p->start, p->queries + 1, sizeof *p->start));
  TRY(arena_alloc(&p->arena, &p->at, p->queries, sizeof *p->at));
  TRY(arena_alloc(&p->arena, &p->length, p->queries, sizeof *p->length));
  TRY(arena_alloc(&p->arena, &p->cell, p->queries, sizeof *p->cell));
  return arena_alloc(&p->arena, &p->goes_on, p->queries, sizeof *p->goes_on);
}

int pieces_open(struct pieces **out, const struct capture_source *capture, struct device *device,
                idx queries)
{
  const struct attention *a = &capture->attention;
  TRY(struct_alloc(out, sizeof **out));
  struct pieces *p = *out;
  gidx row = (gidx)queries * a->heads * (gidx)sizeof(float);
  *p = (struct pieces){.capture = capture, .device = device, .queries = queries};
  TRY(held_heads_check(capture, device, 0, CAPTURE_F32));
  TRY(room_find(capture, device, queries, &p->room));
  gidx cells = p->room * a->kv_heads * (gidx)sizeof(float);
  TRY(plan_alloc(p));
  TRY(buffer_alloc(device, &p->k, cells * a->d));
  TRY(buffer_alloc(device, &p->v, cells * a->dv));
  TRY(buffer_alloc(device, &p->q, row * a->d));
  TRY(buffer_alloc(device, &p->m, row));
  TRY(buffer_alloc(device, &p->l, row));
  return buffer_alloc(device, &p->acc, row * attention_stride(a->dv));
}

void pieces_close(struct pieces *p)
{
  if (!p) return;
  struct buffer *const all[] = {&p->k, &p->v, &p->q, &p->m, &p->l, &p->acc};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(p->device, all[i]);
  arena_free(&p->arena);
  free(p);
}

int pieces_room(struct pieces *p, idx *positions)
{
  if (p->room - p->n_cells < ATTENTION_SHARD || p->n_queries == p->queries) TRY(pieces_flush(p));
  *positions = (idx)((p->room - p->n_cells) / ATTENTION_SHARD * ATTENTION_SHARD);
  return OK;
}

/* Queries that see nothing of a piece stand before those that do, or after them. */
static struct piece queries_trim(const struct attention *a, struct piece x)
{
  gidx before = 0, end = x.first + x.count;
  while (before < x.n && (x.end[before] <= x.first || x.from[before] == x.end[before])) before++;
  while (x.n > before && x.from[x.n - 1] >= end) x.n--;
  x.n -= (idx)before;
  x.query += before, x.from += before, x.end += before;
  x.q += before * a->heads * a->d;
  x.m += before * a->heads, x.l += before * a->heads;
  x.acc += before * a->heads * attention_stride(a->dv);
  return x;
}

int pieces_add(struct pieces *p, const struct piece *piece)
{
  const struct capture_source *s = p->capture;
  const struct attention *a = &s->attention;
  const struct piece x = queries_trim(a, *piece);
  if (x.n <= 0) return OK;
  if (p->n_cells + x.count > p->room || p->n_queries + x.n > p->queries) TRY(pieces_flush(p));
  CHECK(x.count <= p->room && x.n <= p->queries && x.first % ATTENTION_SHARD == 0, ERR_INTERNAL,
        "a piece of %d queries and %d positions from %lld on", x.n, x.count, (long long)x.first);
  float *k = (float *)p->k.host + p->n_cells * a->kv_heads * a->d;
  float *v = (float *)p->v.host + p->n_cells * a->kv_heads * a->dv;
  TRY(s->positions(s->self, x.sequence, x.first, x.count, k, v));
  gidx queries = s->start[x.sequence + 1] - s->start[x.sequence];
  p->at[p->n] = x.query - s->start[x.sequence] + s->length[x.sequence] - queries - x.first;
  p->length[p->n] = x.count;
  p->cell[p->n] = p->n_cells;
  p->goes_on[p->n] = x.goes_on;
  p->list[p->n++] = x;
  p->n_cells += x.count;
  p->n_queries += x.n;
  p->start[p->n] = p->n_queries;
  return OK;
}

static void copy(float *to, const float *from, gidx floats)
{
  memcpy(to, from, (size_t)floats * sizeof *to);
}

/* Sums of a piece to where the device takes them from, or back. */
static void sums_copy(struct pieces *p, gidx i, int back)
{
  const struct attention *a = &p->capture->attention;
  const struct piece *x = &p->list[i];
  gidx row = p->start[i] * a->heads, rows = (gidx)x->n * a->heads, wide = attention_stride(a->dv);
  float *m = (float *)p->m.host + row, *l = (float *)p->l.host + row;
  float *acc = (float *)p->acc.host + row * wide;
  copy(back ? x->m : m, back ? m : x->m, rows);
  copy(back ? x->l : l, back ? l : x->l, rows);
  copy(back ? x->acc : acc, back ? acc : x->acc, rows * wide);
}

/* Bytes of a row of n floats for each head of all queries that wait. */
static gidx rows_bytes(const struct pieces *p, idx n)
{
  return p->n_queries * p->capture->attention.heads * n * (gidx)sizeof(float);
}

static int sums_move(struct pieces *p,
                     int (*move)(struct device *, const struct buffer *, gidx, gidx))
{
  TRY(move(p->device, &p->m, 0, rows_bytes(p, 1)));
  TRY(move(p->device, &p->l, 0, rows_bytes(p, 1)));
  return move(p->device, &p->acc, 0, rows_bytes(p, attention_stride(p->capture->attention.dv)));
}

/* All that waits goes to the device. */
static int waiting_put(struct pieces *p)
{
  const struct attention *a = &p->capture->attention;
  gidx cells = p->n_cells * a->kv_heads * (gidx)sizeof(float), row = (gidx)a->heads * a->d;
  int goes_on = 0;
  for (gidx i = 0; i < p->n; i++) {
    const struct piece *x = &p->list[i];
    copy((float *)p->q.host + p->start[i] * row, x->q, x->n * row);
    if (x->goes_on) sums_copy(p, i, 0);
    goes_on |= x->goes_on;
  }
  TRY(device_put(p->device, &p->k, 0, cells * a->d));
  TRY(device_put(p->device, &p->v, 0, cells * a->dv));
  TRY(device_put(p->device, &p->q, 0, rows_bytes(p, a->d)));
  return goes_on ? sums_move(p, device_put) : OK;
}

/* Run what is on the device. */
static int waiting_run(struct pieces *p)
{
  const struct attend_plan plan = {.attention = &p->capture->attention,
                                   .sequences = (idx)p->n,
                                   .start = p->start,
                                   .at = p->at,
                                   .length = p->length,
                                   .cell = p->cell,
                                   .cells = p->n_cells,
                                   .type = ATTEND_F32,
                                   .goes_on = p->goes_on};
  const struct attend_job job = {
      .q = &p->q, .k = &p->k, .v = &p->v, .rows = &p->acc, .m = &p->m, .l = &p->l};
  struct attend walk;
  int status = attend_open(&walk, p->device, &plan);
  if (!status) status = attend_run(&walk, &job);
  if (!status) status = sums_move(p, device_get);
  attend_close(&walk);
  return status;
}

int pieces_flush(struct pieces *p)
{
  if (!p->n) return OK;
  TRY(waiting_put(p));
  TRY(waiting_run(p));
  for (gidx i = 0; i < p->n; i++) sums_copy(p, i, 1);
  p->n = p->n_cells = p->n_queries = 0;
  return OK;
}
