/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its rows in blocks, with supports_load(), which checks them.  Rank 0 receives the
 * lists of all ranks for a batch of atoms at a time. */
#include "look/top.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"
#include "base/worker.h"
#include "model/codes.h"

enum { LOT_VALUES = 1 << 20 }; /* most entries in the lists of a batch, on all ranks together */

/* The rows of a rank, and what is counted in them. */
struct share {
  const struct support_source *source;
  gidx first, n;
  struct top_rows *top;
  gidx entries, longest;
  struct identity terms;
};

static void block_add(struct share *h, const struct supports *s, gidx begin)
{
  const struct support_view *view = &s->view;
  idx d = h->source->d;
  for (gidx i = 0; i < view->n; i++) {
    gidx from = view->start[i], length = view->start[i + 1] - from;
    for (gidx e = from; e < from + length; e++) {
      float code = code_summary(s->codes + e * d, d);
      h->entries += code != 0;
      top_add(h->top, view->atoms[e], s->first + i, code);
    }
    h->terms.supports += support_terms(view->atoms + from, 1, (idx)length, s->first + i);
  }
  h->terms.codes += codes_terms(s->score, s->codes, view->start[view->n], d, begin);
  h->longest = imax(h->longest, s->longest);
}

static int partition_read(void *argument)
{
  struct share *h = argument;
  for (gidx at = h->first, end = h->first + h->n; at < end;) {
    struct supports s;
    gidx count, begin;
    TRY(supports_block(h->source, at, end - at, &count, &begin));
    int status = supports_load(&s, h->source, at, count, 1);
    if (!status) block_add(h, &s, begin);
    supports_free(&s);
    TRY(status);
    at += count;
  }
  return OK;
}

static int partition_run(struct share *h)
{
  struct worker worker;
  TRY(worker_open(&worker));
  int status = worker_run(&worker, partition_read, h);
  worker_close(&worker);
  return status;
}

/* On rank 0: the lists of all ranks for a batch of atoms. */
struct row_batches {
  idx atoms;   /* atoms of a batch */
  gidx *row;   /* [size][atoms][r] */
  float *code; /* [size][atoms][r] */
  idx *counts; /* [size] values from each rank */
};

static int lists_alloc(const struct comm *c, struct arena *arena, idx k, idx rows,
                       struct top_rows *top, struct row_batches *l)
{
  gidx atoms = LOT_VALUES / ((gidx)rows * c->size);
  l->atoms = (idx)imin(k, imax(1, atoms));
  gidx values = c->rank ? 0 : (gidx)l->atoms * rows * c->size;
  TRY(top_init(top, arena, k, rows));
  TRY(arena_alloc(arena, &l->row, values, sizeof *l->row));
  TRY(arena_alloc(arena, &l->code, values, sizeof *l->code));
  return arena_alloc(arena, &l->counts, c->size, sizeof *l->counts);
}

static int memory_check(const struct comm *c, idx k, idx rows)
{
  struct arena dry = {.is_dry = 1};
  struct top_rows top;
  struct row_batches batches;
  gidx present = memory_per_process(c->local_size);
  TRY(lists_alloc(c, &dry, k, rows, &top, &batches));
  CHECK((gidx)dry.bytes <= present, ERR_MEMORY,
        "%zu bytes are needed for %d rows of each of %d atoms, %lld are present for each rank: "
        "lower --rows",
        dry.bytes, rows, k, (long long)present);
  return OK;
}

/* Merge the lists of all ranks into the lists of rank 0.  Collective. */
static int lists_merge_all(struct comm *c, struct top_rows *t, struct row_batches *l)
{
  for (idx a = 0; a < t->k; a += l->atoms) {
    idx lot = (idx)imin(l->atoms, t->k - a), values = lot * t->r;
    for (int r = 0; r < c->size; r++) l->counts[r] = values;
    TRY(comm_gather(c, t->row + (gidx)a * t->r, l->counts, sizeof *t->row, l->row));
    TRY(comm_gather(c, t->code + (gidx)a * t->r, l->counts, sizeof *t->code, l->code));
    for (gidx i = values; c->rank == 0 && i < (gidx)values * c->size; i++)
      if (l->row[i] >= 0) top_add(t, a + (idx)(i % values / t->r), l->row[i], l->code[i]);
  }
  return OK;
}

/* Set the counts and hashes of the result on every rank.  Collective. */
static int result_count(struct comm *c, const struct share *h, struct top_result *r)
{
  const struct support_source *s = h->source;
  gidx sums[] = {h->entries, (gidx)h->terms.supports, (gidx)h->terms.codes};
  gidx *all = calloc((size_t)c->size, sizeof *all), longest = 0;
  TRY(comm_agree(c, all ? OK : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate")));
  TRY(comm_sum(c, sums, LENGTH(sums)));
  TRY(comm_allgather_long(c, h->longest, all));
  for (int q = 0; q < c->size; q++) longest = imax(longest, all[q]);
  free(all);
  r->entries = sums[0];
  r->inputs.supports = content_hash((uint64_t)sums[1], s->n, longest, 1);
  r->inputs.codes = content_hash((uint64_t)sums[2], s->n, longest, s->d);
  for (idx a = 0; c->rank == 0 && a < s->k; a++) r->dead += r->top.row[(gidx)a * r->top.r] < 0;
  return comm_broadcast(c, &r->dead, 1, sizeof r->dead);
}

static int task_check(const struct comm *c, const struct support_source *source, idx rows)
{
  CHECK(source->has_codes, ERR_INPUT,
        "'%s' holds scores of `sagitta route` and no codes: make codes with `sagitta encode`",
        source->name);
  return memory_check(c, source->k, rows);
}

int top_find(struct comm *c, const struct support_source *source, idx rows, struct top_result *r)
{
  struct share *h = NULL;
  struct row_batches batches;
  *r = (struct top_result){0};
  int status = task_check(c, source, rows);
  if (!status) status = struct_alloc(&h, sizeof *h);
  if (!status) status = lists_alloc(c, &r->arena, source->k, rows, &r->top, &batches);
  TRY(comm_agree(c, status));
  h->source = source;
  h->top = &r->top;
  comm_partition(source->n, c->size, c->rank, &h->first, &h->n);
  TRY(comm_agree_at(c, partition_run(h), h->first));
  TRY(lists_merge_all(c, &r->top, &batches));
  TRY(result_count(c, h, r));
  gidx count = (gidx)source->k * rows;
  r->fingerprint = fingerprint(r->top.row, count, sizeof *r->top.row, 0) +
                   3 * fingerprint(r->top.code, count, sizeof *r->top.code, 0);
  free(h);
  return OK;
}

void top_free(struct top_result *r)
{
  arena_free(&r->arena);
}
