/* SPDX-License-Identifier: BSD-3-Clause
 * Pieces wait on the host until there is no room for another one.  Then all are copied to the
 * device, and their sums come back.  Lists of attribution stay on the device until the last
 * piece. */
#include "harvest/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/attribution.h"
#include "harvest/resident_capture.h"

/* Keys and values on the device take at most PIECES_BYTES, and at most 1 / PART of its free
 * memory. */
enum { PIECES_BYTES = 256 << 20, PART = 4 };

struct pieces {
  const struct capture_source *capture;
  struct device *device;
  gidx room, queries;         /* positions and queries, at most */
  gidx n, n_cells, n_queries; /* waiting pieces; their positions and queries */
  struct buffer k, v;         /* [room][kv_heads][columns] */
  struct buffer q, m, l, acc; /* [queries][heads], and columns */
  struct piece *list;         /* [queries] */
  gidx *start, *at, *length;  /* [queries + 1] the plan for the device */
  gidx *cell, *first;         /* [queries] */
  int *goes_on;
  /* For attribution, between pieces_pairs_begin() and pieces_pairs_end() */
  const struct piece_pairs *pairs;         /* borrowed; NULL: sums are made */
  gidx *pair_start, *pair_end;             /* [queries] of the waiting pieces */
  struct buffer atoms;                     /* [k][heads][dv] */
  struct buffer atom_of, row, code, chain; /* of all pairs; they grow */
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

/* *room <- the number of positions on the device at a time: all, or as many as fit in the
 * limits. */
static int room_find(const struct capture_source *s, struct device *device, idx queries,
                     gidx beside, gidx *room)
{
  const struct attention *a = &s->attention;
  gidx all = 0, available, least = ATTENTION_SHARD * cell_bytes(a) + queries * query_bytes(a);
  for (gidx i = 0; i < s->sequences; i++) all += s->length[i];
  TRY(buffer_bytes_available(device, &available));
  available = imax(available - beside, 0);
  CHECK(least <= available, ERR_MEMORY,
        "keys and values of %d positions of '%s' and %d queries take %.1f MB, and %.1f MB are free "
        "on the GPU: use '--device cpu', or a smaller '--block'",
        ATTENTION_SHARD, s->name, queries, 1e-6 * (double)least, 1e-6 * (double)available);
  gidx bytes = imin(PIECES_BYTES, available / PART);
  all = ceil_div(imax(all, 1), ATTENTION_SHARD);
  *room = imax(imin(all, bytes / cell_bytes(a) / ATTENTION_SHARD), 1) * ATTENTION_SHARD;
  return OK;
}

int pieces_check(const struct capture_source *s, struct device *device, idx queries, gidx beside)
{
  gidx room;
  TRY(resident_capture_heads_check(s, device, 0, CAPTURE_F32));
  return room_find(s, device, queries, beside, &room);
}

static int plan_alloc(struct pieces *p)
{
  TRY(arena_alloc(&p->arena, &p->list, p->queries, sizeof *p->list));
  TRY(arena_alloc(&p->arena, &p->start, p->queries + 1, sizeof *p->start));
  TRY(arena_alloc(&p->arena, &p->at, p->queries, sizeof *p->at));
  TRY(arena_alloc(&p->arena, &p->length, p->queries, sizeof *p->length));
  TRY(arena_alloc(&p->arena, &p->cell, p->queries, sizeof *p->cell));
  TRY(arena_alloc(&p->arena, &p->first, p->queries, sizeof *p->first));
  TRY(arena_alloc(&p->arena, &p->pair_start, p->queries, sizeof *p->pair_start));
  TRY(arena_alloc(&p->arena, &p->pair_end, p->queries, sizeof *p->pair_end));
  return arena_alloc(&p->arena, &p->goes_on, p->queries, sizeof *p->goes_on);
}

static int atoms_put(struct pieces *p, const struct resident_capture_atoms *atoms)
{
  const struct attention *a = &p->capture->attention;
  gidx bytes = (gidx)atoms->k * a->heads * a->dv * (gidx)sizeof *atoms->atoms;
  TRY(buffer_wrap(p->device, &p->atoms, (void *)(uintptr_t)atoms->atoms, bytes));
  return device_put(p->device, &p->atoms, 0, bytes);
}

int pieces_open(struct pieces **out, const struct capture_source *capture, struct device *device,
                idx queries, const struct resident_capture_atoms *atoms)
{
  const struct attention *a = &capture->attention;
  TRY(struct_alloc(out, sizeof **out));
  struct pieces *p = *out;
  gidx row = (gidx)queries * a->heads * (gidx)sizeof(float);
  *p = (struct pieces){.capture = capture, .device = device, .queries = queries};
  TRY(resident_capture_heads_check(capture, device, 0, CAPTURE_F32));
  TRY(room_find(capture, device, queries, atoms->beside, &p->room));
  gidx cells = p->room * a->kv_heads * (gidx)sizeof(float);
  TRY(plan_alloc(p));
  TRY(buffer_alloc(device, &p->k, cells * a->d));
  TRY(buffer_alloc(device, &p->v, cells * a->dv));
  TRY(buffer_alloc(device, &p->q, row * a->d));
  TRY(buffer_alloc(device, &p->m, row));
  TRY(buffer_alloc(device, &p->l, row));
  TRY(buffer_alloc(device, &p->acc, row * attention_stride(a->dv)));
  return atoms->k ? atoms_put(p, atoms) : OK;
}

void pieces_close(struct pieces *p)
{
  if (!p) return;
  struct buffer *const all[] = {&p->k,     &p->v,       &p->q,   &p->m,    &p->l,    &p->acc,
                                &p->atoms, &p->atom_of, &p->row, &p->code, &p->chain};
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

/* Drop queries at both ends of the piece that see none of its positions. */
static struct piece queries_trim(const struct attention *a, struct piece x)
{
  gidx before = 0, end = x.first + x.count;
  while (before < x.n && (x.end[before] <= x.first || x.from[before] == x.end[before])) before++;
  while (x.n > before && x.from[x.n - 1] >= end) x.n--;
  x.n -= (idx)before;
  x.query += before, x.from += before, x.end += before;
  x.q += before * a->heads * a->d;
  x.m += before * a->heads, x.l += before * a->heads;
  if (x.acc) x.acc += before * a->heads * attention_stride(a->dv);
  return x;
}

/* Note the pairs of the next piece; returns whether it has any. */
static int pairs_note(struct pieces *p, const struct piece *x)
{
  const struct piece_pairs *pairs = p->pairs;
  const gidx *start = pairs->start + (x->query - pairs->first);
  for (idx i = 0; i < x->n; i++) {
    p->pair_start[p->n_queries + i] = start[i];
    p->pair_end[p->n_queries + i] = start[i + 1];
  }
  return start[x->n] > start[0];
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
  if (p->pairs && !pairs_note(p, &x)) return OK;
  float *k = (float *)p->k.host + p->n_cells * a->kv_heads * a->d;
  float *v = (float *)p->v.host + p->n_cells * a->kv_heads * a->dv;
  TRY(s->positions(s->self, x.sequence, x.first, x.count, k, v));
  gidx queries = s->start[x.sequence + 1] - s->start[x.sequence];
  p->at[p->n] = x.query - s->start[x.sequence] + s->length[x.sequence] - queries - x.first;
  p->length[p->n] = x.count;
  p->cell[p->n] = p->n_cells;
  p->first[p->n] = x.first;
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

/* Copy the sums of a piece into the host sides of the buffers, or back; with attribution only m and
 * l. */
static void sums_copy(struct pieces *p, gidx i, int back)
{
  const struct attention *a = &p->capture->attention;
  const struct piece *x = &p->list[i];
  gidx row = p->start[i] * a->heads, rows = (gidx)x->n * a->heads, wide = attention_stride(a->dv);
  float *m = (float *)p->m.host + row, *l = (float *)p->l.host + row;
  float *acc = (float *)p->acc.host + row * wide;
  copy(back ? x->m : m, back ? m : x->m, rows);
  copy(back ? x->l : l, back ? l : x->l, rows);
  if (x->acc) copy(back ? x->acc : acc, back ? acc : x->acc, rows * wide);
}

/* Bytes of n floats per head, for all waiting queries. */
static gidx rows_bytes(const struct pieces *p, idx n)
{
  return p->n_queries * p->capture->attention.heads * n * (gidx)sizeof(float);
}

static int sums_move(struct pieces *p,
                     int (*move)(struct device *, const struct buffer *, gidx, gidx))
{
  TRY(move(p->device, &p->m, 0, rows_bytes(p, 1)));
  TRY(move(p->device, &p->l, 0, rows_bytes(p, 1)));
  if (p->pairs) return OK;
  return move(p->device, &p->acc, 0, rows_bytes(p, attention_stride(p->capture->attention.dv)));
}

/* Copy all waiting pieces to the device. */
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

/* Continue the lists and chains of the pairs with the pieces on the device. */
static int waiting_attribute(struct pieces *p, struct attend *walk)
{
  const struct attribute_job job = {.q = &p->q,
                                    .k = &p->k,
                                    .v = &p->v,
                                    .m = &p->m,
                                    .l = &p->l,
                                    .atoms = &p->atoms,
                                    .pairs = p->pairs->count,
                                    .start = p->pair_start,
                                    .end = p->pair_end,
                                    .atom_of = &p->atom_of,
                                    .top = p->pairs->top->r,
                                    .row = &p->row,
                                    .code = &p->code,
                                    .part = &p->chain};
  TRY(attend_attribute(walk, &job));
  return device_get(p->device, &p->m, 0, sizeof(float)); /* this waits for the device */
}

/* Continue m, l and acc with the pieces on the device. */
static int waiting_sum(struct pieces *p, struct attend *walk)
{
  const struct attend_job job = {
      .q = &p->q, .k = &p->k, .v = &p->v, .rows = &p->acc, .m = &p->m, .l = &p->l};
  TRY(attend_run(walk, &job));
  return sums_move(p, device_get);
}

/* Run the pieces on the device. */
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
                                   .goes_on = p->goes_on,
                                   .first = p->first};
  struct attend walk;
  int status = attend_open(&walk, p->device, &plan);
  if (!status) status = p->pairs ? waiting_attribute(p, &walk) : waiting_sum(p, &walk);
  attend_close(&walk);
  return status;
}

int pieces_flush(struct pieces *p)
{
  if (!p->n) return OK;
  TRY(waiting_put(p));
  TRY(waiting_run(p));
  for (gidx i = 0; i < p->n && !p->pairs; i++) sums_copy(p, i, 1);
  p->n = p->n_cells = p->n_queries = 0;
  return OK;
}

/* Copy an array of the pairs to the device, into a buffer that is grown if necessary. */
static int array_put(struct pieces *p, struct buffer *b, const void *from, gidx bytes)
{
  if (b->bytes < bytes || !b->bytes) {
    buffer_free(p->device, b);
    TRY(buffer_alloc(p->device, b, imax(bytes + bytes / PART, 1)));
  }
  if (bytes) memcpy(b->host, from, (size_t)bytes);
  return device_put(p->device, b, 0, bytes);
}

static int array_get(struct pieces *p, const struct buffer *b, void *to, gidx bytes)
{
  TRY(device_get(p->device, b, 0, bytes));
  if (bytes) memcpy(to, b->host, (size_t)bytes);
  return OK;
}

static gidx lists_offsets(const struct piece_pairs *pairs)
{
  return pairs->count * pairs->top->r;
}

static gidx chains_bytes(const struct pieces *p, const struct piece_pairs *pairs)
{
  return pairs->count * p->capture->attention.heads * (gidx)sizeof *pairs->part;
}

int pieces_pairs_begin(struct pieces *p, const struct piece_pairs *pairs)
{
  gidx places = lists_offsets(pairs);
  TRY(pieces_flush(p));
  TRY(array_put(p, &p->atom_of, pairs->atom_of, pairs->count * (gidx)sizeof *pairs->atom_of));
  TRY(array_put(p, &p->row, pairs->top->row, places * (gidx)sizeof *pairs->top->row));
  TRY(array_put(p, &p->code, pairs->top->code, places * (gidx)sizeof *pairs->top->code));
  TRY(array_put(p, &p->chain, pairs->part, chains_bytes(p, pairs)));
  p->pairs = pairs;
  return OK;
}

int pieces_pairs_end(struct pieces *p)
{
  const struct piece_pairs *pairs = p->pairs;
  gidx places = lists_offsets(pairs);
  TRY(pieces_flush(p));
  p->pairs = NULL;
  TRY(array_get(p, &p->row, pairs->top->row, places * (gidx)sizeof *pairs->top->row));
  TRY(array_get(p, &p->code, pairs->top->code, places * (gidx)sizeof *pairs->top->code));
  return array_get(p, &p->chain, pairs->part, chains_bytes(p, pairs));
}
