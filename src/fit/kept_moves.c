/* SPDX-License-Identifier: BSD-3-Clause
 * Codes are solved in pieces of rows.  Supports go to rank 0 in sum blocks (ROW_BLOCK rows,
 * N.0). */
#include "fit/kept_moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/access.h"
#include "refit/sparse_coder.h"
#include "refit/sweep_end.h"

enum { PIECE = 4096 }; /* rows of one call of the solver */

static int rows_solve(struct kept *w, struct kept_rows *r)
{
  for (idx at = 0; at < r->n; at += PIECE) {
    const struct ragged_job job = {.n = (idx)imin(PIECE, r->n - at),
                                   .x = r->x + (gidx)at * w->p,
                                   .start = r->start + at,
                                   .atoms = r->of.atoms,
                                   .codes = r->of.codes,
                                   .quality = r->quality + at,
                                   .table = &w->table,
                                   .rho = w->task->rho};
    TRY(ragged_solve(&w->ragged, &job));
  }
  return OK;
}

/* r->metrics <- the metrics of the codes, on rank 0. */
static int rows_evaluate(struct kept *w, struct kept_rows *r)
{
  struct metrics *m = &r->metrics;
  struct code_counts counts = {0};
  const struct coded view = {.n = r->n, .quality = host_buffer(r->quality)};
  codes_count(&counts, r->of.codes, r->of.n);
  gidx all[] = {counts.all, counts.negative, counts.zero};
  TRY(comm_sum(w->c, all, LENGTH(all)));
  *m = (struct metrics){.n = r->total, .p = w->p, .k = w->k};
  m->max_decoder_cosine = nan_canonical();
  TRY(coded_metrics(&view, w->c, r->tss, m));
  metrics_codes(m, &(struct code_counts){all[0], all[1], all[2]});
  return OK;
}

/* w->contents <- the hashes of what the files will contain. */
static int contents_name(struct kept *w)
{
  const struct kept_rows *r = &w->rows;
  gidx terms = (gidx)codes_terms(r->of.score, r->of.codes, r->of.n, 1, r->offset);
  TRY(comm_sum(w->c, &terms, 1));
  w->contents = (struct identity){
      .dictionary = content_hash(items_terms(w->atoms, w->k, w->p, 0), w->k, 1, w->p),
      .supports = w->inputs.supports,
      .codes = content_hash((uint64_t)terms, r->total, w->state.s, 1)};
  return OK;
}

static int codes_solve(struct kept *w)
{
  TRY(device_put(&w->device, &w->table, 0, (gidx)w->k * w->p * (gidx)sizeof(float)));
  TRY(rows_solve(w, &w->rows));
  return rows_solve(w, &w->unseen);
}

int kept_solve(struct kept *w)
{
  const struct kept_task *t = w->task;
  struct phase *phase = &w->phases[KEPT_CODES];
  const struct table_cosine table = {w->atoms,   w->k,          1, w->p, t->threads,
                                     t->variant, t->atoms->name};
  phase->device = w->device.kind;
  phase_begin(phase);
  TRY(comm_agree(w->c, codes_solve(w)));
  phase_end(phase, 0);
  TRY(rows_evaluate(w, &w->rows));
  if (t->unseen) TRY(rows_evaluate(w, &w->unseen));
  metrics_density(&w->rows.metrics, w->density, w->rows.total, w->k);
  if (w->k <= t->max_cosine)
    TRY(refit_table_cosine(w->c, &table, &w->rows.metrics.max_decoder_cosine));
  return contents_name(w);
}

int kept_move(struct kept *w)
{
  gidx values = (gidx)w->k * w->p;
  struct phase *phase = &w->phases[KEPT_UPDATE];
  const struct update_ragged rows = {w->rows.start, w->rows.of.atoms, w->rows.of.codes, w->rows.x,
                                     w->longest};
  real *frames = w->state.frames;
  phase->device = w->device.kind;
  phase_begin(phase);
  for (gidx i = 0; i < values; i++) frames[i] = w->atoms[i];
  TRY(update_add_ragged(&w->update, &rows));
  TRY(update_apply(&w->update, KEPT_PASSES, w->steps));
  for (gidx i = 0; i < values; i++) w->atoms[i] = (float)frames[i];
  phase_end(phase, 0);
  return OK;
}

/* The buffers that bring a sum block to rank 0. */
struct block_way {
  struct entry_list all; /* on rank 0 */
  idx *counts;           /* [ranks] */
  gidx *start;           /* [ROW_BLOCK + 1] */
  idx *mine, *lengths;   /* mine: row lengths on the owner; lengths: on rank 0; both [ROW_BLOCK] */
  struct arena arena;
};

static int block_way_open(struct block_way *o, const struct kept *w)
{
  TRY(arena_alloc(&o->arena, &o->counts, w->c->size, sizeof *o->counts));
  TRY(arena_alloc(&o->arena, &o->start, ROW_BLOCK + 1, sizeof *o->start));
  TRY(arena_alloc(&o->arena, &o->mine, ROW_BLOCK, sizeof *o->mine));
  TRY(arena_alloc(&o->arena, &o->lengths, ROW_BLOCK, sizeof *o->lengths));
  int fits = w->c->rank || entries_reserve(&o->all, (gidx)ROW_BLOCK * w->state.s);
  CHECK(fits, ERR_MEMORY, "cannot allocate the codes of %d rows", ROW_BLOCK);
  return OK;
}

/* Send rows first .. first + n - 1 of rank `owner` to rank 0. */
static int block_gather(struct kept *w, struct block_way *o, int owner, gidx first, idx n)
{
  const struct kept_rows *r = &w->rows;
  struct comm *c = w->c;
  idx at = c->rank == owner ? (idx)(first - r->first) : 0;
  gidx begin = c->rank == owner ? r->start[at] : 0, entries = 0;
  for (idx i = 0; i < n && c->rank == owner; i++)
    o->mine[i] = (idx)(r->start[at + i + 1] - r->start[at + i]);
  memset(o->counts, 0, (size_t)c->size * sizeof *o->counts);
  o->counts[owner] = n;
  TRY(comm_gather(c, o->mine, o->counts, sizeof *o->mine, o->lengths));
  if (c->rank == owner) entries = r->start[at + n] - begin;
  TRY(comm_sum(c, &entries, 1));
  TRY(comm_agree(c, comm_count(entries, &o->counts[owner])));
  const size_t unit = sizeof(float);
  TRY(comm_gather(c, r->of.atoms + begin, o->counts, unit, o->all.atoms));
  TRY(comm_gather(c, r->of.score + begin, o->counts, unit, o->all.score));
  TRY(comm_gather(c, r->of.codes + begin, o->counts, unit, o->all.codes));
  o->start[0] = 0;
  for (idx i = 0; i < n && c->rank == 0; i++) o->start[i + 1] = o->start[i] + o->lengths[i];
  return OK;
}

static int blocks_write(struct kept *w, struct block_way *o, const struct support_sink *sink,
                        struct worker *worker)
{
  struct comm *c = w->c;
  for (int owner = 0; owner < c->size; owner++) {
    gidx first, count = refit_rows_partition(w->rows.total, c->size, owner, &first);
    for (gidx i = 0; i < count; i += ROW_BLOCK) {
      const struct support_block block = {.first = first + i,
                                          .n = (idx)imin(ROW_BLOCK, count - i),
                                          .s = w->task->top,
                                          .d = 1,
                                          .atoms = o->all.atoms,
                                          .score = o->all.score,
                                          .codes = o->all.codes,
                                          .start = w->task->is_equal ? NULL : o->start};
      TRY(block_gather(w, o, owner, block.first, block.n));
      TRY(comm_agree(c, c->rank ? OK : support_access(worker, sink, &block)));
    }
  }
  return OK;
}

int kept_write(struct kept *w, const struct support_sink *sink)
{
  struct block_way o = {0};
  struct worker worker = {0};
  int status = block_way_open(&o, w);
  if (!status) status = worker_open(&worker);
  TRY(comm_agree(w->c, status));
  TRY(blocks_write(w, &o, sink, &worker));
  worker_close(&worker);
  entries_free(&o.all);
  arena_free(&o.arena);
  return OK;
}
