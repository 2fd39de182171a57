/* SPDX-License-Identifier: BSD-3-Clause
 * The loop over updates; the held-out rows are evaluated every LINE_UPDATES updates, and at the
 * end. */
#include "find/find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "find/batch.h"
#include "find/grow.h"
#include "find/judge.h"
#include "find/move.h"
#include "find/open.h"
#include "find/renew.h"
#include "find/sums.h"
#include "model/access.h"
#include "model/advice.h"
#include "seed/mean.h"

enum { LINE_UPDATES = 8 };

static const struct phase phase_names[FIND_PHASES] = {
    [FIND_START] = {.name = "start"},
    [FIND_READ] = {.name = "read"},
    [FIND_SCORES] = {.name = "scores", .unit = "GMAC"},
    [FIND_CHOOSE] = {.name = "choose"},
    [FIND_CODES] = {.name = "codes"},
    [FIND_SHARE] = {.name = "share"},
    [FIND_SUMS] = {.name = "sums"},
    [FIND_MOVE] = {.name = "move"},
    [FIND_GROW] = {.name = "grow"},
    [FIND_EVALUATE] = {.name = "judge"},
    [FIND_WRITE] = {.name = "write"},
};

static int mean_find(struct finder *f)
{
  const struct find_point *start = f->task->start;
  size_t bytes = (size_t)f->p * sizeof *f->mean;
  const real *given = start ? start->mean : NULL;
  if (given)
    memcpy(f->mean, given, bytes);
  else if (!start && f->task->center)
    TRY(mean_compute_warned(f->c, &f->fitted, &f->sink->reading, f->mean, NULL));
  else
    f->mean = NULL;
  f->batches.mean = f->mean;
  memset(f->described, 0, bytes);
  if (f->mean) memcpy(f->described, f->mean, bytes);
  return OK;
}

/* The mean squared norm of the first rows, less the mean. */
static int square_find(struct finder *f)
{
  const struct row_source *rows = &f->fitted;
  idx n = (idx)imin(rows->n, SHUFFLE_ROWS), p = f->p;
  float *x = f->batches.pool.host;
  real sum = 0;
  int status =
      f->c->rank ? OK : rows_access(&f->batches.worker, (struct rows_access){rows, 0, n, x});
  TRY(comm_agree(f->c, status));
  if (f->c->rank == 0) {
    rows_center(x, n, p, f->mean);
    for (gidx i = 0; i < (gidx)n * p; i++) sum = fma(x[i], x[i], sum);
    f->square = sum / n;
  }
  return comm_broadcast(f->c, &f->square, 1, sizeof f->square);
}

/* Resume from the point of an earlier run. */
static int start_take(struct finder *f)
{
  const struct find_point *s = f->task->start;
  gidx p = f->p;
  CHECK(s->rows_hash == f->rows_hash, ERR_INPUT,
        "the earlier run was begun with other rows than those of '%s': rows_hash %016llx, not "
        "%016llx; resume with the same",
        f->task->rows->name, (unsigned long long)s->rows_hash, (unsigned long long)f->rows_hash);
  CHECK(s->held_out_hash == f->judge.hash, ERR_INPUT,
        "the earlier run was judged by other rows than this one: held_out_hash %016llx, not "
        "%016llx; resume with the same",
        (unsigned long long)s->held_out_hash, (unsigned long long)f->judge.hash);
  CHECK(s->update >= 0 && s->update <= f->result->all && s->k >= 1 && s->k <= f->plan.grown &&
            s->count >= 0 && s->count <= s->update,
        ERR_INPUT,
        "the state of the earlier run is damaged: it has %lld updates of %lld, %d atoms of %d, and "
        "%lld lines",
        (long long)s->update, (long long)f->result->all, s->k, f->plan.grown, (long long)s->count);
  memcpy(f->atoms, s->atoms, (size_t)(s->k * p) * sizeof *f->atoms);
  memcpy(f->means, s->means, (size_t)s->k * sizeof *f->means);
  memcpy(f->firing, s->firing, (size_t)s->k * sizeof *f->firing);
  memcpy(f->offset.host, s->offset, (size_t)p * sizeof(float));
  for (idx c = 0; c < p; c++) f->described[c] = (f->mean ? f->mean[c] : 0) + (real)s->offset[c];
  memcpy(f->lines, s->lines, (size_t)s->count * sizeof *f->lines);
  f->count = s->count;
  f->fired_rows = s->fired_rows;
  f->replaced = s->replaced;
  f->k = s->k;
  f->update = s->update;
  return device_put(&f->device, &f->offset, 0, p * (gidx)sizeof(float));
}

/* Make the first atoms from rows of the first batch. */
static int start_make(struct finder *f)
{
  TRY(batch_read(f, 0));
  return atoms_grow(f, find_plan_step(&f->plan, 0).k);
}

static int state_open(struct finder *f)
{
  TRY(batches_hash(&f->batches, &f->rows_hash));
  TRY(mean_find(f));
  TRY(square_find(f));
  TRY(validation_read(f));
  advice_rows(f->fitted.n, f->plan.k);
  TRY(validation_advise(f));
  f->encoder = (struct found_encoder){.looks = f->task->recipe.end_looks,
                                      .relative = f->task->recipe.relative,
                                      .floor = f->task->recipe.floor * f->square};
  f->active.floor = f->encoder.floor;
  return f->task->start ? comm_agree(f->c, start_take(f)) : start_make(f);
}

static int point_show(struct finder *f, enum find_reason why)
{
  const struct find_point point = {.update = f->update,
                                   .count = f->count,
                                   .lines = f->lines,
                                   .k = f->k,
                                   .atoms = f->atoms,
                                   .means = f->means,
                                   .firing = f->firing,
                                   .fired_rows = f->fired_rows,
                                   .replaced = f->replaced,
                                   .encoder = f->encoder,
                                   .mean = f->mean,
                                   .offset = f->offset.host,
                                   .described = f->described,
                                   .rows_hash = f->rows_hash,
                                   .held_out_hash = f->judge.hash};
  struct phase *write = &f->result->phases[FIND_WRITE];
  /* stop reading ahead: only one thread at a time may use files */
  if (why != FIND_LINE) batches_rest(&f->batches);
  phase_begin(write);
  TRY(f->sink->point(f->sink->self, &point, why));
  phase_end(write, 0);
  return OK;
}

/* Find the thresholds of the encoder: the lowest score of each choice in the first batch. */
static int thresholds_find(struct finder *f)
{
  real share = sqrt(fmin((real)f->k / f->plan.k, 1));
  const struct batch_choice choice = {
      .l0 = f->plan.l0 * share, .looks = f->encoder.looks, .threshold = f->encoder.threshold};
  TRY(batch_read(f, 0));
  if (!comm_failure(f->c)) comm_record(f->c, batch_atoms(f));
  return batch_code(f, &choice);
}

/* Add a line about the last update, which `step` describes. */
static int line_add(struct finder *f, const struct find_step *step)
{
  struct find_line *line = &f->lines[f->count];
  idx k = f->k, old = (idx)imin(step->k, k);
  *line = (struct find_line){
      .update = f->update, .atoms = old, .l0 = step->l0, .replaced = f->replaced};
  for (idx a = 0; a < old; a++) line->dead += f->firing[a] == 0;
  f->k = old; /* new atoms are not evaluated */
  TRY(thresholds_find(f));
  TRY(validation_run(f));
  f->k = k;
  f->replaced = 0;
  line->held = f->judge.explained;
  line->held_out_l0 = f->judge.l0;
  line->seconds = log_seconds() - f->begun;
  f->count++;
  return comm_broadcast(f->c, &line->seconds, 1, sizeof line->seconds);
}

/* Compute the sums over the rows of the update's batches.  *asked: reasons to stop, as bits; any
 * reason except STOPS_SAVE ends the update. */
static int batches_add(struct finder *f, const struct find_step *step, uint64_t *asked)
{
  struct phase *sums = &f->result->phases[FIND_SUMS];
  float threshold[FIND_LOOKS + 1];
  const struct batch_choice choice = {.l0 = step->l0,
                                      .rho = find_rho(&f->task->recipe, step),
                                      .looks = f->task->recipe.looks,
                                      .threshold = threshold};
  if (!comm_failure(f->c)) comm_record(f->c, batch_atoms(f));
  if (!comm_failure(f->c)) comm_record(f->c, sums_clear(f));
  f->step = *step;
  for (gidx b = 0; b < step->batches; b++) {
    *asked = b ? stops_asked(&f->sink->stops) : *asked;
    TRY(comm_agree_flags(f->c, OK, 0, asked));
    if (*asked & ~STOPS_SAVE) return OK;
    TRY(batch_read(f, step->first + b));
    if (b == 0) TRY(batch_thresholds(f, &choice));
    TRY(batch_code_nested(f, &choice));
    phase_begin(sums);
    if (!comm_failure(f->c)) comm_record(f->c, sums_add(f));
    phase_end(sums, 0);
  }
  return OK;
}

static int update_run(struct finder *f, const struct find_step *step, uint64_t *asked)
{
  TRY(batches_add(f, step, asked));
  if (*asked & ~STOPS_SAVE) return OK;
  f->ridge = find_ridge(&f->task->recipe, step, f->fired_rows, f->square);
  TRY(atoms_move(f));
  if (step->replaces) TRY(atoms_replace(f));
  f->update++;
  if (f->update < f->result->all)
    TRY(atoms_grow(f, find_plan_step(&f->plan, f->update).k));
  else
    TRY(atoms_keep(f));
  return comm_agree(f->c, OK);
}

/* A line needs an evaluation of the held-out rows, which takes as long as an update, or longer. */
static int line_is_due(const struct finder *f)
{
  return f->update % LINE_UPDATES == 0 || f->update == f->result->all;
}

static int updates_run(struct finder *f)
{
  struct progress progress;
  gidx all = f->result->all;
  progress_start(&progress, "find", "updates", all);
  progress.before = f->update;
  while (f->update < all) {
    struct find_step step = find_plan_step(&f->plan, f->update);
    uint64_t asked = stops_asked(&f->sink->stops);
    TRY(update_run(f, &step, &asked));
    if (asked & ~STOPS_SAVE) {
      f->result->stopped = 1;
      f->sink->stops.stopped(f->sink->stops.self, asked & ~STOPS_SAVE);
      return point_show(f, FIND_STATE);
    }
    progress_show(&progress, f->update);
    if (line_is_due(f)) {
      TRY(line_add(f, &step));
      TRY(point_show(f, f->update == all ? FIND_END : FIND_LINE));
    }
    if (asked && f->update < all) TRY(point_show(f, FIND_STATE));
  }
  return OK;
}

static int finder_run(struct finder *f)
{
  struct phase *start = &f->result->phases[FIND_START];
  phase_begin(start);
  TRY(comm_agree(f->c, finder_open(f)));
  TRY(comm_devices_open(f->c, f->c, &f->device, (gidx)f->plan.batch * f->p * (gidx)sizeof(float)));
  TRY(state_open(f));
  phase_end(start, 0);
  TRY(updates_run(f));
  f->result->updates = f->update;
  comm_devices_close(f->c);
  return OK;
}

int find_run(const struct find_task *task, struct comm *c, const struct find_sink *sink,
             struct find_result *result)
{
  struct finder *f; /* on the heap, as explained at struct run in job/run.h */
  *result = (struct find_result){0};
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  f->task = task;
  f->c = c;
  f->sink = sink;
  f->result = result;
  f->begun = log_seconds();
  memcpy(result->phases, phase_names, sizeof phase_names);
  TRY(finder_run(f));
  finder_close(f);
  free(f);
  return OK;
}
