/* SPDX-License-Identifier: BSD-3-Clause
 * Memory, rows, and the given supports, which stay as they are.  kept_moves.c has the codes and the
 * moves of atoms. */
#include "fit/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/dictionary.h"
#include "device/encoder.h"
#include "device/route.h"
#include "refit/sparse_coder.h"
#include "refit/color.h"
#include "refit/sums.h"

enum { PIECE = 4096 }; /* rows of one call of the encoder */

static struct device_options options_of(const struct kept *w, const char *kind)
{
  const struct kept_task *t = w->task;
  double rows = (double)t->rows->n, work = rows * w->p * (w->k + 4.0 * t->top * t->top);
  return (struct device_options){.p = w->p,
                                 .d = 1,
                                 .max_atoms = t->encoder ? w->k : 0,
                                 .nonnegative = t->nonnegative,
                                 .threads = t->threads,
                                 .variant = t->variant,
                                 .kind = kind,
                                 .work = work,
                                 .top_k = 1,
                                 .route_rows = PIECE,
                                 .local_rank = w->c->local_rank,
                                 .encoder = t->encoder != NULL};
}

/* The shapes that the update needs.  The true s is set later, when the supports are known. */
static void shapes_fill(struct kept *w)
{
  const struct kept_task *t = w->task;
  w->shape_task = (struct refit_task){.threads = t->threads, .nonnegative = t->nonnegative};
  w->state = (struct refit_state){.task = &w->shape_task,
                                  .c = w->c,
                                  .k = w->k,
                                  .d = 1,
                                  .p = w->p,
                                  .s = (idx)imin(t->top, RAGGED_MOST),
                                  .total = t->rows->n,
                                  .first = w->rows.first,
                                  .n = w->rows.n,
                                  .frames = w->state.frames};
}

static int rows_alloc(struct kept *w, struct kept_rows *r, const struct row_source *rows)
{
  struct arena *a = &w->arena;
  if (!rows) return OK;
  r->total = rows->n;
  gidx n = refit_rows_partition(rows->n, w->c->size, w->c->rank, &r->first);
  CHECK(n < INT32_MAX, ERR_MEMORY, "%lld rows a rank are too many: add ranks", (long long)n);
  r->n = (idx)n;
  TRY(arena_alloc(a, &r->x, n * w->p, sizeof *r->x));
  TRY(arena_alloc(a, &r->start, n + 1, sizeof *r->start));
  return arena_alloc(a, &r->quality, n, sizeof *r->quality);
}

/* Allocate all arrays whose size does not depend on the number of entries, except the arrays of the
 * update. */
static int arrays_alloc(struct kept *w)
{
  const struct kept_task *t = w->task;
  struct arena *a = &w->arena;
  gidx values = (gidx)w->k * w->p, piece = (gidx)PIECE * w->p * (gidx)sizeof(float);
  TRY(rows_alloc(w, &w->rows, t->rows));
  TRY(rows_alloc(w, &w->unseen, t->unseen));
  w->blocks = ceil_div(t->rows->n, ROW_BLOCK);
  TRY(arena_alloc(a, &w->longest, w->blocks, sizeof *w->longest));
  TRY(arena_alloc(a, &w->sizes, w->c->size, sizeof *w->sizes));
  TRY(arena_alloc(a, &w->steps, w->k, sizeof *w->steps));
  TRY(arena_alloc(a, &w->density, w->k, sizeof *w->density));
  TRY(arena_alloc(a, &w->atoms, values, sizeof *w->atoms));
  TRY(arena_alloc(a, &w->state.frames, values, sizeof *w->state.frames));
  TRY(buffer_wrap(&w->device, &w->table, w->atoms, values * (gidx)sizeof(float)));
  if (t->encoder) TRY(buffer_alloc(&w->device, &w->piece, piece));
  TRY(ragged_open(&w->ragged, &w->device, w->p, PIECE));
  shapes_fill(w);
  return OK;
}

int kept_memory(const struct kept_task *task, struct comm *c, gidx *bytes)
{
  struct kept w = {.task = task, .c = c, .k = task->atoms->k, .p = task->atoms->p};
  gidx host, entries, skipped, columns;
  w.arena.is_dry = w.device.is_dry = 1;
  TRY(arrays_alloc(&w));
  TRY(update_plan_ragged(&w.state, &w.device, &host));
  comm_partition(w.p, c->size, c->rank, &skipped, &columns);
  entries = task->supports ? ceil_div(task->supports->entries, imax(w.blocks, 1)) *
                                 ceil_div(w.rows.n, ROW_BLOCK)
            : task->top < w.k ? (gidx)(w.rows.n + w.unseen.n) * task->top
                              : 0;
  if (task->encoder) host += (gidx)w.k * w.p * (gidx)sizeof(float);
  *bytes = (gidx)w.arena.bytes + (gidx)w.ragged.arena.bytes +
           imax(w.device.planned_host, w.device.planned_device) + host + 12 * entries +
           cpu_normal_beside(task->threads, (idx)columns);
  return OK;
}

static int memory_check(const struct kept *w)
{
  gidx bytes, present = memory_per_process(w->c->local_size);
  TRY(kept_memory(w->task, w->c, &bytes));
  CHECK(bytes <= present, ERR_MEMORY,
        "%lld bytes are needed, %lld are present for each rank: take more machines, so that each "
        "holds fewer rows",
        (long long)bytes, (long long)present);
  return OK;
}

static int longest_check(const struct kept_rows *r)
{
  for (idx i = 0; i < r->n; i++) {
    gidx length = r->start[i + 1] - r->start[i];
    CHECK(length <= RAGGED_MOST, ERR_INPUT,
          "row %lld has %lld atoms, but codes are solved on at most %d", (long long)(r->first + i),
          (long long)length, RAGGED_MOST);
  }
  return OK;
}

/* Find the supports of n own rows from `at` on with the encoder. */
static int piece_encode(struct kept *w, struct kept_rows *r, idx at, idx n, idx *lengths)
{
  struct entry_list found = {0};
  struct encoder_job job = {
      .encoder = w->task->encoder, .rows = &w->piece, .n = n, .lengths = lengths, .found = &found};
  gidx bytes = (gidx)n * w->p * (gidx)sizeof(float);
  memcpy(w->piece.host, r->x + (gidx)at * w->p, (size_t)bytes);
  TRY(device_put(&w->device, &w->piece, 0, bytes));
  TRY(device_encoder(&w->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %lld and atom %d is not a finite float32 number",
        (long long)(r->first + at + job.bad.row), job.bad.atom);
  int fits = entries_append(&r->of, &found);
  entries_free(&found);
  CHECK(fits, ERR_MEMORY, "cannot allocate %lld more codes: add ranks", (long long)job.found->n);
  for (idx i = 0; i < n; i++) r->start[at + i + 1] = r->start[at + i] + lengths[i];
  return OK;
}

static int rows_encode(struct kept *w, struct kept_rows *r)
{
  idx *lengths = malloc(PIECE * sizeof *lengths);
  int status = lengths ? OK : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate rows");
  for (idx at = 0; at < r->n && !status; at += PIECE)
    status = piece_encode(w, r, at, (idx)imin(PIECE, r->n - at), lengths);
  free(lengths);
  return status;
}

static int rows_take(struct kept *w, struct kept_rows *r)
{
  struct supports given = {0};
  TRY(supports_access(w->task->supports, r->first, r->n, 1, &given));
  TRY(supports_check_order(&given, w->task->supports));
  gidx n = given.view.start[r->n];
  int fits = entries_reserve(&r->of, n);
  CHECK(fits, ERR_MEMORY, "cannot allocate %lld codes", (long long)n);
  memcpy(r->start, given.view.start, ((size_t)r->n + 1) * sizeof *r->start);
  if (n) {
    memcpy(r->of.atoms, given.view.atoms, (size_t)n * sizeof *r->of.atoms);
    memcpy(r->of.score, given.score, (size_t)n * sizeof *r->of.score);
    memcpy(r->of.codes, given.codes, (size_t)n * sizeof *r->of.codes);
  }
  r->of.n = n;
  supports_free(&given);
  return OK;
}

/* Read rows and their supports.  An encoder that is not `centered` takes rows with their mean: then
 * the mean is subtracted after encoding. */
static int rows_read(struct kept *w, struct kept_rows *r, const struct row_source *rows)
{
  const struct kept_task *t = w->task;
  const real *before = !t->encoder || t->encoder->centered ? t->mean : NULL;
  struct phase *read = &w->phases[KEPT_READ], *supports = &w->phases[KEPT_SUPPORTS];
  phase_begin(read);
  TRY(refit_rows_load(rows, before, r->first, r->n, t->threads, r->x, &r->terms));
  phase_end(read, 0);
  phase_begin(supports);
  TRY(t->encoder ? rows_encode(w, r) : rows_take(w, r));
  phase_end(supports, 0);
  if (!before) rows_center(r->x, r->n, w->p, t->mean);
  return longest_check(r);
}

/* r->offset <- the number of entries of the ranks before this one.  r->entries <- the number of
 * entries of all ranks.  r->tss, on rank 0 <- the total sum of squares of the rows of all ranks.
 * r->terms <- the hash of all rows. */
static int rows_name(struct kept *w, struct kept_rows *r)
{
  gidx terms = (gidx)r->terms;
  TRY(comm_allgather_long(w->c, r->of.n, w->sizes));
  for (int i = 0; i < w->c->size; i++) {
    if (i < w->c->rank) r->offset += w->sizes[i];
    r->entries += w->sizes[i];
  }
  TRY(comm_sum(w->c, &terms, 1));
  r->terms = content_hash((uint64_t)terms, r->total, w->p, 1);
  return refit_tss(w->c, r->total, r->x, w->p, &r->tss);
}

/* longest[] <- the number of atoms of the longest row of each sum block (ROW_BLOCK rows, N.0), on
 * every rank.  s of the state <- the largest of these numbers, for which the update allocates. */
static int blocks_measure(struct kept *w)
{
  const struct kept_rows *r = &w->rows;
  struct comm *c = w->c;
  idx *counts = malloc((size_t)c->size * sizeof *counts);
  gidx first = 0, blocks = 0, longest = 1;
  TRY(comm_agree(c, counts ? OK
                           : status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate ranks")));
  for (int i = 0; i < c->size; i++) {
    refit_blocks_partition(r->total, c->size, i, &first, &blocks);
    counts[i] = (idx)blocks;
  }
  refit_blocks_partition(r->total, c->size, c->rank, &first, &blocks);
  for (idx i = 0; i < r->n; i++) {
    idx *here = &w->longest[first + i / ROW_BLOCK];
    *here = (idx)imax(*here, r->start[i + 1] - r->start[i]);
  }
  int status = comm_allgather(c, w->longest + first, counts, sizeof *w->longest, w->longest);
  free(counts);
  for (gidx b = 0; b < w->blocks; b++) longest = imax(longest, w->longest[b]);
  w->state.s = (idx)longest;
  return status;
}

/* density[k] <- the number of rows, over all ranks, whose support has each atom.  inputs.supports
 * <- the hash of the supports. */
static int supports_name(struct kept *w)
{
  const struct kept_rows *r = &w->rows;
  uint64_t terms = 0;
  memset(w->density, 0, (size_t)w->k * sizeof *w->density);
  for (gidx e = 0; e < r->of.n; e++) w->density[r->of.atoms[e]]++;
  for (idx i = 0; i < r->n; i++)
    terms += support_terms(r->of.atoms + r->start[i], 1, (idx)(r->start[i + 1] - r->start[i]),
                           r->first + i);
  gidx sum = (gidx)terms;
  TRY(comm_sum(w->c, w->density, w->k));
  TRY(comm_sum(w->c, &sum, 1));
  w->inputs.supports = content_hash((uint64_t)sum, r->total, w->state.s, 1);
  return OK;
}

int kept_atoms_take(struct kept *w, const struct atom_source *atoms)
{
  int status = atoms->read(atoms->self, 0, w->k, w->atoms);
  if (!status) status = atoms_check(w->atoms, w->k, 1, w->p, 0, atoms->name);
  return comm_agree(w->c, status);
}

static int atoms_name(struct kept *w, uint64_t *hash)
{
  *hash = content_hash(items_terms(w->atoms, w->k, w->p, 0), w->k, 1, w->p);
  return OK;
}

/* The encoder is on the device only while it finds supports. */
static int inputs_read(struct kept *w)
{
  const struct kept_task *t = w->task;
  int status = t->encoder ? device_put_tile(&w->device, t->encoder->weights, w->k, 0) : OK;
  if (!status) status = rows_read(w, &w->rows, t->rows);
  if (!status && t->unseen) status = rows_read(w, &w->unseen, t->unseen);
  if (!status && t->encoder) status = device_dictionary_free(&w->device);
  return comm_agree_at(w->c, status, w->rows.first);
}

static int devices_open(struct kept *w)
{
  const struct kept_task *t = w->task;
  struct device_options options = options_of(w, t->device), host = options_of(w, "cpu");
  host.max_atoms = host.encoder = 0;
  TRY(device_check_subnormals(t->threads));
  TRY(device_check_fma());
  TRY(device_open(&w->device, &options));
  TRY(device_open(&w->host, &host));
  return arrays_alloc(w);
}

/* r->quality <- how well the given codes describe the own rows. */
static int given_quality(struct kept *w, struct kept_rows *r)
{
  return device_quality(&w->host, &(struct quality_job){.n = r->n,
                                                        .rows = r->x,
                                                        .atoms = w->atoms,
                                                        .start = r->start,
                                                        .support = r->of.atoms,
                                                        .codes = r->of.codes,
                                                        .quality = r->quality});
}

static int given_explain(struct kept *w, struct kept_rows *r)
{
  struct metrics m = {.n = r->total, .p = w->p};
  const struct coded view = {.n = r->n, .quality = host_buffer(r->quality)};
  TRY(comm_agree(w->c, given_quality(w, r)));
  TRY(coded_metrics(&view, w->c, r->tss, &m));
  r->own = m.explained_variance;
  return OK;
}

static int named_check(const struct kept *w)
{
  const struct kept_task *t = w->task;
  if (!t->supports) return OK;
  TRY(identity_rows_check(t->supports->name, t->named.rows, t->rows->name, w->inputs.rows));
  return identity_dictionary_check(t->supports->name, t->named.dictionary, t->atoms->name,
                                   w->inputs.dictionary);
}

int kept_open(struct kept *w, const struct kept_task *task, struct comm *c)
{
  static const char *const names[KEPT_PHASES] = {"read", "supports", "codes", "update", "write"};
  *w = (struct kept){.task = task, .c = c, .k = task->atoms->k, .p = task->atoms->p};
  for (int i = 0; i < KEPT_PHASES; i++) w->phases[i] = (struct phase){.name = names[i]};
  TRY(comm_agree(c, memory_check(w)));
  TRY(comm_agree(c, devices_open(w)));
  TRY(kept_atoms_take(w, task->atoms));
  TRY(atoms_name(w, &w->inputs.dictionary));
  TRY(inputs_read(w));
  TRY(rows_name(w, &w->rows));
  w->inputs.rows = w->rows.terms;
  TRY(comm_agree(c, named_check(w)));
  TRY(given_explain(w, &w->rows));
  if (task->unseen) TRY(rows_name(w, &w->unseen));
  if (task->unseen) TRY(given_explain(w, &w->unseen));
  TRY(blocks_measure(w));
  TRY(supports_name(w));
  return comm_agree(c, update_open_ragged(&w->update, &w->state, &w->device));
}

void kept_close(struct kept *w)
{
  update_free(&w->update);
  ragged_close(&w->ragged);
  buffer_free(&w->device, &w->table);
  buffer_free(&w->device, &w->piece);
  entries_free(&w->rows.of);
  entries_free(&w->unseen.of);
  device_close(&w->device);
  device_close(&w->host);
  arena_free(&w->arena);
  *w = (struct kept){0};
}
