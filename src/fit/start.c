/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a fit (fitted, in parts, and held out), and the atoms that it begins with. */
#include "fit/start.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "comm/buffers.h"
#include "fit/fit_impl.h"
#include "fit/sweep.h"
#include "refit/sums.h"
#include "seed/seed.h"

static int table_read(void *self, idx first, idx count, float *out)
{
  const struct fit *f = self;
  gidx frame = (gidx)f->task->d * f->fitted.p;
  memcpy(out, f->table + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

static int table_write(void *self, gidx first, gidx count, const float *values)
{
  struct fit *f = self;
  gidx frame = (gidx)f->task->d * f->fitted.p;
  memcpy(f->table + first * frame, values, (size_t)(count * frame) * sizeof *values);
  return OK;
}

/* Supports for a state that is not routed yet: every row has atoms 0 .. s - 1 with codes 0. */
static int no_starts(void *self, gidx first, gidx count, gidx *out)
{
  const struct fit *f = self;
  for (gidx i = 0; i <= count; i++) out[i] = (first + i) * f->result->top_s;
  return OK;
}

static int no_entries(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct fit *f = self;
  for (gidx i = 0; i < count; i++) {
    atoms[i] = (idx)((first + i) % f->result->top_s);
    if (score) score[i] = 0;
  }
  if (codes) memset(codes, 0, (size_t)(count * f->task->d) * sizeof *codes);
  return OK;
}

static gidx rows_of_part(const struct fit *f, gidx part)
{
  return imin(f->part_rows, f->fitted.n - part * f->part_rows);
}

void fit_part_begin(struct fit *f)
{
  gidx next = (f->sweep + 1) % f->parts;
  if (f->sweep < f->sweeps)
    part_ahead_begin(&f->ahead, &f->fitted, next, next * f->part_rows, rows_of_part(f, next), f->c);
}

static gidx ahead_most(const struct fit *f)
{
  return part_ahead_most(f->part_rows, rows_of_part(f, f->parts - 1), f->c);
}

gidx fit_ahead_bytes(const struct fit *f)
{
  return f->parts > 1 ? ahead_most(f) * f->fitted.p * (gidx)sizeof(float) : 0;
}

void fit_part_choose(struct fit *f, gidx part)
{
  gidx first = part * f->part_rows, n = rows_of_part(f, part);
  part_source(&f->part, &f->fitted, first, n, &f->part_source);
  f->no_supports.n = n;
  f->no_supports.entries = n * f->result->top_s;
}

/* *fitted, *held <- the rows to fit and the rows to evaluate.  Rows of t->rows are read through
 * *split. */
static int rows_split(const struct fit_task *t, struct row_split *split, struct row_source *fitted,
                      struct row_source *held)
{
  const struct split_task task = {t->rows, t->held, t->held_out_fraction, FIT_HELD_MOST, t->seed};
  TRY(split_open(split, &task, fitted, held));
  CHECK(fitted->n >= (gidx)t->k * t->d, ERR_INPUT,
        "'%s' has %lld rows, of which %lld are held out: too few for %d atoms; lower --atoms or "
        "give more rows",
        t->rows->name, (long long)t->rows->n, (long long)(t->rows->n - fitted->n), t->k);
  return OK;
}

int fit_task_check(const struct fit_task *t, gidx *fitted)
{
  struct row_split split = {0};
  struct row_source rows, held;
  TRY(rows_split(t, &split, &rows, &held));
  *fitted = rows.n;
  split_free(&split);
  return OK;
}

int fit_sources_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  TRY(rows_split(t, &f->split, &f->fitted, &f->held));
  gidx p = f->fitted.p;
  f->part_rows = t->minibatch ? imin(t->minibatch, f->fitted.n) : f->fitted.n;
  f->parts = (f->fitted.n + f->part_rows - 1) / f->part_rows;
  f->sweeps = t->sweeps * f->parts;
  CHECK(!t->start || t->start->sweep <= f->sweeps, ERR_INPUT,
        "%lld of %lld sweeps are done: give --sweeps of as many or more",
        (long long)t->start->sweep, (long long)f->sweeps);
  CHECK(f->sweeps < INT32_MAX, ERR_INPUT,
        "%lld sweeps over %lld parts are too many: lower --sweeps", (long long)t->sweeps,
        (long long)f->parts);
  f->result->top_s = (idx)imin(t->top_s, t->k);
  f->result->fitted_rows = f->fitted.n;
  f->result->held_out_rows = f->held.n;
  f->table_source = (struct atom_source){
      .k = t->k, .d = t->d, .p = (idx)p, .name = "the dictionary", .self = f, .read = table_read};
  f->no_supports = (struct support_source){.k = t->k,
                                           .d = t->d,
                                           .has_codes = 1,
                                           .name = t->rows->name,
                                           .self = f,
                                           .starts = no_starts,
                                           .read = no_entries};
  TRY(arena_alloc(&f->arena, &f->table, t->k * t->d * p, sizeof *f->table));
  TRY(arena_alloc(&f->arena, &f->mean, t->center ? p : 0, sizeof *f->mean));
  TRY(arena_alloc(&f->arena, &f->steps, t->k, sizeof *f->steps));
  TRY(arena_alloc(&f->arena, &f->dead, t->k, sizeof *f->dead));
  TRY(arena_alloc(&f->arena, &f->idle, t->k, sizeof *f->idle));
  TRY(arena_alloc(&f->arena, &f->moves, t->k, sizeof *f->moves));
  TRY(arena_alloc(&f->arena, &f->near, fit_replaces_duplicates(f) ? t->k : 0, sizeof *f->near));
  TRY(arena_alloc(&f->arena, &f->likeness, fit_replaces_duplicates(f) ? t->k : 0,
                  sizeof *f->likeness));
  TRY(arena_alloc(&f->arena, &f->shares, f->c->size, sizeof *f->shares));
  TRY(arena_alloc(&f->arena, &f->lines, f->sweeps + 1, sizeof *f->lines));
  memset(f->idle, 0, (size_t)t->k * sizeof *f->idle);
  fit_part_choose(f, 0);
  f->how = fit_update_choose(t, f->result->top_s);
  if (!t->center) f->mean = NULL;
  return OK;
}

int fit_start_draw(struct fit *f)
{
  const struct fit_task *t = f->task;
  const struct matrix_sink sink = {f, table_write};
  struct seed_result drawn;
  struct seed_task seed = {&f->fitted, f->mean, &sink, t->k, t->d, t->seed};
  TRY(seed_run(&seed, f->all, &drawn));
  return comm_broadcast(f->all, f->table, t->k, (size_t)(t->d * f->fitted.p) * sizeof *f->table);
}

int fit_start_take(struct fit *f)
{
  const struct fit_point *start = f->task->start;
  size_t p = (size_t)f->fitted.p;
  memcpy(f->table, start->atoms, (size_t)f->task->k * (size_t)f->task->d * p * sizeof *f->table);
  memcpy(f->lines, start->lines, ((size_t)start->sweep + 1) * sizeof *f->lines);
  f->sweep = start->sweep;
  f->best = fit_best(f->lines, f->sweep);
  if (start->idle) memcpy(f->idle, start->idle, (size_t)f->task->k * sizeof *f->idle);
  CHECK(!f->mean || memcmp(f->mean, start->mean, p * sizeof *f->mean) == 0, ERR_INPUT,
        "the mean of the fitted rows of '%s' is not that of the earlier run: resume with the same "
        "rows",
        f->task->rows->name);
  return OK;
}

/* Prepare the exchange between ranks: in the joint update GPUs exchange lists and Gram rows
 * directly, if they can. */
static int devices_join(struct fit *f)
{
  if (comm_is_alone(f->c)) return sparse_coder_join(&f->coder, f->all);
  if (f->how != UPDATE_JOINT) return comm_devices_report(f->c, &f->coder.device);
  gidx lists = f->part_rows / f->c->size * f->result->top_s * (gidx)sizeof(idx);
  return comm_devices_open(f->c, f->c, &f->coder.device, lists);
}

int fit_part_load(struct fit *f, gidx part)
{
  struct refit_state *state = &f->state;
  coded_close(&f->coder, &f->coded);
  refit_state_free(state);
  f->update.has_columns = f->conjugate.has_columns = 0;
  fit_part_choose(f, part);
  part_ahead_take(&f->ahead, part, &f->refit_task);
  TRY(refit_state_load(state, &f->refit_task, f->c));
  f->refit_task.read = NULL;
  TRY(refit_tss(f->c, state->total, state->x, state->p, &f->tss));
  if (!f->coder.device.backend) {
    worker_close(&f->warmer);
    TRY(comm_agree(f->c, sparse_coder_open(&f->coder, &f->shape)));
    TRY(devices_join(f));
    snprintf(f->result->device, sizeof f->result->device, "%s %s", f->coder.device.kind,
             f->coder.device.variant);
  }
  return comm_agree(f->c, coded_open(&f->coder, &f->coded, state->n, state->first, state->x,
                                     state->atoms, state->score));
}

/* If every rank has all rows, either all ranks take the steps on a GPU or none does. */
static int steps_open(struct fit *f)
{
  struct resident *r = &f->resident;
  int status = resident_open(r, &f->state, &f->coder, &f->coded, f->table, f->task->directions);
  uint64_t lacks = !r->is_on;
  TRY(comm_agree_flags(f->c, status, 0, &lacks));
  if (lacks) resident_close(r);
  return OK;
}

static int state_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  const struct fit_point *start = t->start && t->start->idle ? t->start : NULL;
  int is_joint = f->how == UPDATE_JOINT, is_conjugate = f->how == UPDATE_CONJUGATE;
  if (f->reads_ahead)
    TRY(comm_agree(f->c, part_ahead_open(&f->ahead, ahead_most(f), f->fitted.p, f->mean)));
  TRY(fit_part_load(f, f->sweep % f->parts));
  TRY(fit_validation_open(&f->validation, &f->held, f->mean, &f->coder, f->c));
  if (!f->task->no_advice) TRY(fit_validation_advise(&f->validation));
  f->refit_task.beside = 0; /* allocated by now: checks of later parts must not add it */
  if (is_joint)
    TRY(comm_agree(f->c, update_open(&f->update, &f->state, &f->coder.device, f->part_rows)));
  if (is_conjugate) TRY(conjugate_open(&f->conjugate, &f->state, f->part_rows));
  if (!fit_moves_all(f->how)) TRY(steps_open(f));
  if (f->resident.is_on) f->refit_task.threads = team_beside(t->threads);
  if (is_joint && start) TRY(update_put(&f->update, start->gram, start->target));
  if (is_conjugate && start) conjugate_put(&f->conjugate, start->weight);
  fit_part_begin(f);
  return OK;
}

/* Open the state.  The plan cannot see other users of the GPU, so the GPU's memory may still be too
 * small: then the message says what helps. */
int fit_state_start(struct fit *f)
{
  char why[1024];
  int status = state_open(f);
  if (status != ERR_MEMORY || !device_is_gpu(&f->coder.device)) return status;
  status_take(why, sizeof why);
  FAIL(ERR_MEMORY,
       "%s; give '--update joint' and a %s '--minibatch', which holds fewer rows at a time", why,
       f->parts > 1 ? "smaller" : "small");
}
