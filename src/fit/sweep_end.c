/* SPDX-License-Identifier: BSD-3-Clause
 * Fitted rows are routed and coded in batches.  The job may be stopped between two batches. */
#include "fit/sweep_end.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "fit/fit_impl.h"
#include "refit/row_batches.h"

/* Copy the codes into the state. */
static int codes_take(struct fit *f)
{
  struct refit_state *state = &f->state;
  const float *codes = f->coded.codes.host;
  gidx count = (gidx)state->n * state->s * state->d;
  TRY(coded_get(&f->coder, &f->coded, CODED_CODES));
  for (gidx i = 0; i < count; i++) state->codes[i] = codes[i];
  return OK;
}

/* Copy the results for this rank's rows to the places that need them. */
static int codes_fetch(struct fit *f)
{
  int codes = f->how == UPDATE_CONJUGATE ? CODED_CODES : 0;
  TRY(coded_get(&f->coder, &f->coded, CODED_SUPPORTS | CODED_QUALITY | codes));
  return fit_moves_all(f->how) || f->resident.is_on ? OK : codes_take(f);
}

/* Route and code the rows in memory, and evaluate them and the held-out rows, unless the job is
 * stopped meanwhile. */
static int rows_encode(struct fit *f, struct fit_line *line)
{
  struct refit_state *state = &f->state;
  struct metrics m = {.n = state->total, .p = state->p};
  struct row_batches batches = {state->n, sparse_coder_rows_at_once(&f->coder, 1),
                                .key = state->first, .stops = &f->sink->coding};
  int status = OK;
  TRY(comm_agree(f->c, sparse_coder_put(&f->coder, f->table)));
  while (row_batches_next(&batches, f->c, &status))
    status = sparse_coder_run(&f->coder, &f->coded, batches.first, batches.count, f->task->rho);
  TRY(status);
  f->stopped = batches.is_stopped;
  if (f->stopped) return OK;
  TRY(comm_agree(f->c, codes_fetch(f)));
  struct phase *index = &f->result->phases[FIT_INDEX];
  phase_begin(index);
  TRY(fit_moves_all(f->how) ? refit_state_count(state)
      : f->resident.is_on   ? resident_index(&f->resident)
                            : refit_state_index(state));
  phase_end(index, 0);
  TRY(coded_metrics(&f->coded, f->c, f->tss, &m));
  line->fitted = m.explained_variance;
  line->dead = 0;
  for (idx a = 0; a < state->k; a++) line->dead += refit_atom_rows(state, a) == 0;
  return fit_validation_run(&f->validation, &f->sink->coding, &line->held, &f->stopped);
}

/* idle[a] <- the number of consecutive sweeps, up to this one, in which no row used atom a. */
static void idle_count(struct fit *f)
{
  for (idx a = 0; a < f->task->k; a++)
    f->idle[a] = refit_atom_rows(&f->state, a) ? 0 : f->idle[a] + 1;
}

/* The explained variance is not defined if all fitted rows are equal.  With several parts, a part
 * whose rows are equal does not count: other parts follow.  Without parts and held-out rows there
 * is nothing to evaluate, and the fit fails. */
static int worth_check(const struct fit *f, const struct fit_line *line)
{
  CHECK(f->held.n > 0 || f->parts > 1 || !isnan(line->fitted), ERR_INPUT,
        "the fitted rows of '%s' do not vary: their explained variance, by which the fit is "
        "judged, is not defined",
        f->task->rows->name);
  return OK;
}

real fit_worth(const struct fit_line *line)
{
  real worth = isnan(line->held) ? line->fitted : line->held;
  return isnan(worth) ? -INFINITY : worth;
}

gidx fit_best(const struct fit_line *lines, gidx sweep)
{
  gidx best = 0;
  for (gidx i = 1; i <= sweep; i++)
    if (fit_worth(&lines[i]) > fit_worth(&lines[best])) best = i;
  return best;
}

/* Send the state to the sink, which writes files. */
static int sweep_show(struct fit *f)
{
  struct fit_sweep done = {.point = {.sweep = f->sweep,
                                     .lines = f->lines,
                                     .atoms = f->table,
                                     .mean = f->mean,
                                     .norm = f->norm,
                                     .rows_hash = f->state.inputs.rows,
                                     .held_out_hash = f->validation.hash},
                           .best = f->best,
                           .fitted_rows = f->fitted.n,
                           .parts = f->parts};
  if (f->parts > 1 && f->how == UPDATE_JOINT)
    TRY(update_get(&f->update, &done.point.gram, &done.point.target));
  if (f->parts > 1 && f->how == UPDATE_CONJUGATE) done.point.weight = f->conjugate.weight;
  if (f->parts > 1) done.point.idle = f->idle;
  part_ahead_pause(&f->ahead);
  TRY(f->sink->sweep(f->sink->self, &done));
  part_ahead_go(&f->ahead);
  return OK;
}

int fit_sweep_close(struct fit *f)
{
  struct fit_line *line = &f->lines[f->sweep];
  line->sweep = f->sweep;
  TRY(rows_encode(f, line));
  if (f->stopped) return OK;
  idle_count(f);
  line->seconds = log_seconds() - f->begun;
  TRY(comm_broadcast(f->c, line, 1, sizeof *line));
  TRY(worth_check(f, line));
  f->best = fit_best(f->lines, f->sweep);
  phase_begin(&f->result->phases[FIT_SHOW]);
  TRY(sweep_show(f));
  phase_end(&f->result->phases[FIT_SHOW], 0);
  return OK;
}

int fit_sweep_reopen(struct fit *f)
{
  const struct fit_point *start = f->task->start;
  const struct fit_line *then = &start->lines[start->sweep];
  struct fit_line now = {0};
  const char *name = f->task->rows->name;
  CHECK(f->state.inputs.rows == start->rows_hash, ERR_INPUT,
        "the earlier run was begun with other rows than those of '%s': rows_hash %016llx, not "
        "%016llx; resume with the same",
        name, (unsigned long long)start->rows_hash, (unsigned long long)f->state.inputs.rows);
  TRY(rows_encode(f, &now));
  if (f->stopped) return OK;
  if (!start->idle) idle_count(f);
  TRY(comm_broadcast(f->c, &now, 1, sizeof now));
  TRY(worth_check(f, &now));
  CHECK(f->validation.hash == start->held_out_hash, ERR_INPUT,
        "the earlier run was judged by other rows than this one: held_out_hash %016llx, not "
        "%016llx; resume with the same",
        (unsigned long long)start->held_out_hash, (unsigned long long)f->validation.hash);
  CHECK(memcmp(&now.fitted, &then->fitted, sizeof now.fitted) == 0 &&
            memcmp(&now.held, &then->held, sizeof now.held) == 0,
        ERR_INPUT,
        "the atoms of the earlier run explain %.17g and %.17g of the fitted and of the held-out "
        "rows, but it recorded %.17g and %.17g",
        now.fitted, now.held, then->fitted, then->held);
  return OK;
}
