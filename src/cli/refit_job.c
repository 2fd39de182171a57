/* SPDX-License-Identifier: BSD-3-Clause
 * The computation and report of a sweep, then the loop of sweeps.  refit_files.c publishes them. */
#include "cli/refit_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "job/checkpoint.h"
#include "model/directions.h"
#include "model/identity.h"
#include "refit/color.h"
#include "refit/frames.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"

int refit_held_out_evaluate(struct refit_job *j)
{
  struct refit_state *f = &j->state;
  const struct stops stops = job_stops(&j->files.job);
  int stopped;
  if (!j->o->holdout) return OK;
  TRY(refit_frames_table(f));
  TRY(comm_agree(j->c, sparse_coder_put(&j->coder, f->table)));
  return fit_validation_run(&j->validation, &stops, &j->held, &stopped);
}

/* Explained variances of the same codes, by metrics and by residuals, differ by rounding only,
 * which is far less than this. */
#define SAME_VARIANCE 1e-6

int refit_state_evaluate(struct refit_job *j, const char *file, real said, real *explained)
{
  real rss;
  TRY(comm_agree(j->c, refit_state_residuals(&j->state)));
  TRY(refit_rss(&j->state, &rss));
  if (j->c->rank) return OK;
  struct metrics m = {.n = j->state.total, .p = j->state.p};
  metrics_fit(&m, rss, j->tss, 0, 0);
  *explained = m.explained_variance;
  if (fabs(said - *explained) > SAME_VARIANCE)
    log_warn("'%s' says that its codes explain %.6g, with these rows and atoms they explain %.6g: "
             "were the codes solved for other rows or atoms?",
             file, said, *explained);
  return OK;
}

int refit_start_evaluate(struct refit_job *j)
{
  const struct supports_input *supports = &j->inputs.supports;
  real is = 0;
  struct fit_start *start = &j->files.facts.start;
  start->rounds = supports->rounds;
  start->top_s = supports->top_s > 0 ? supports->top_s : 0;
  start->rho = supports->rho;
  start->inputs = j->state.inputs;
  TRY(refit_state_evaluate(j, supports->source.name, supports->explained_variance, &is));
  start->held.rows = j->validation.hash;
  TRY(refit_held_out_evaluate(j));
  if (j->c->rank) return OK;
  gidx dead = 0;
  for (idx a = 0; a < j->state.k; a++) dead += refit_atom_rows(&j->state, a) == 0;
  j->files.lines[0] =
      (struct history_line){.explained_variance = is, .held_out = j->held, .dead = (real)dead};
  return OK;
}

int refit_state_finish(struct refit_job *j, int reroute)
{
  struct phase *phase = &j->phases[reroute ? REFIT_ROUTE : REFIT_CODES];
  int is_there = j->resident.is_on;
  const struct sweep_end_options options = {reroute || is_there ? &j->coder : NULL,
                                            is_there ? &j->coded : NULL,
                                            is_there ? &j->resident : NULL,
                                            reroute,
                                            j->state.table,
                                            j->o->cosine_limit,
                                            job_stops(&j->files.job)};
  int stopped;
  phase_begin(phase);
  TRY(refit_sweep_end(&j->state, &options, j->density, j->tss, &j->metrics, &stopped));
  phase_end(phase, 0);
  return OK;
}

int refit_classes_find(struct refit_job *j)
{
  struct class_report report;
  phase_begin(&j->phases[REFIT_COLOR]);
  classes_free(&j->classes);
  TRY(fit_inputs_classes(&j->inputs, &j->state, resident_looker(&j->resident), &j->classes));
  phase_end(&j->phases[REFIT_COLOR], 0);
  classes_report(&j->classes, j->state.s, &report);
  if (j->phases[REFIT_COLOR].calls == 1) color_log(&report);
  return OK;
}

/* Add the line of a sweep to the history, with the counts of its steps.  Rank 0 alone. */
static void line_add(struct refit_job *j, const struct sweep_counts *counts)
{
  gidx sweep = j->files.facts.sweeps;
  j->files.lines[sweep] = (struct history_line){.sweep = (real)sweep,
                                                .explained_variance = j->metrics.explained_variance,
                                                .held_out = j->held,
                                                .dead = (real)j->metrics.dead_atoms,
                                                .accepted = (real)counts->accepted,
                                                .rejected = (real)counts->rejected,
                                                .escalated = (real)counts->escalated};
  char unseen[40] = "";
  if (j->o->holdout) snprintf(unseen, sizeof unseen, ", unseen %.6g", j->held);
  log_info("sweep   %lld: explained_variance %.6g -> %.6g%s, steps accepted %lld, rejected %lld, "
           "escalated %lld",
           (long long)sweep, j->files.lines[sweep - 1].explained_variance,
           j->metrics.explained_variance, unseen, (long long)counts->accepted,
           (long long)counts->rejected, (long long)counts->escalated);
  j->all.accepted += counts->accepted;
  j->all.rejected += counts->rejected;
  j->all.escalated += counts->escalated;
}

/* If this rank has all rows and a GPU, keep the rows on the GPU from sweep to sweep. */
static int rows_settle(struct refit_job *j)
{
  struct refit_state *f = &j->state;
  if (j->rows->size > 1 || !j->coder.device.backend) return OK;
  if (!strcmp(j->coder.device.kind, "cpu")) return OK;
  TRY(coded_open(&j->coder, &j->coded, f->n, f->first, f->x, f->atoms, f->score));
  TRY(coded_put(&j->coder, &j->coded, f->codes));
  return resident_open(&j->resident, f, &j->coder, &j->coded, f->table, j->o->directions);
}

/* If each rank has all rows, either all ranks take their steps on GPUs, or none does. */
static int steps_open(struct refit_job *j)
{
  int status = rows_settle(j);
  uint64_t lacks = !j->resident.is_on;
  TRY(comm_agree_flags(j->c, status, 0, &lacks));
  if (!lacks) return OK;
  resident_close(&j->resident);
  coded_close(&j->coder, &j->coded);
  return OK;
}

/* Called between atoms, and after the last one: save the sweep if that is due, and ask whether to
 * stop.  --max-seconds counts only after the first call, so that each run takes some steps. */
static int steps_poll(void *self, const struct sweep_point *at, int *stop)
{
  struct refit_job *j = self;
  TRY(sweep_files_poll(&j->files.sweep, at, stop));
  j->run->max_seconds = j->o->max_seconds;
  return OK;
}

/* Take a step for every atom.  *stopped <- 1: the job was stopped inside the sweep. */
static int steps_take(struct refit_job *j, struct sweep_counts *counts, int *stopped)
{
  struct phase *phase = &j->phases[REFIT_STEPS];
  char what[64];
  *stopped = 0;
  TRY(comm_agree(j->c, refit_sweep_begin(j)));
  snprintf(what, sizeof what, "sweep   %lld of %lld:", (long long)j->files.facts.sweeps + 1,
           (long long)j->o->sweeps);
  const struct sparse_coder *routes = j->o->reroute ? &j->coder : NULL;
  const struct sweep_task sweep = {.classes = &j->classes,
                                   .q = j->o->directions,
                                   .what = what,
                                   .watch = {steps_poll, j},
                                   .start = j->begun,
                                   .after =
                                       refit_sweep_end_seconds(&j->state, routes, j->o->reroute)};
  if (!j->resident.is_on)
    return refit_sweep(&j->state, &sweep, j->phases, j->steps, counts, stopped);
  phase->device = j->coder.device.kind;
  phase_begin(phase);
  TRY(resident_sweep(&j->resident, &j->classes, j->steps, counts));
  phase_end(phase, 0);
  return OK;
}

static int sweep_run(struct refit_job *j)
{
  struct sweep_counts counts;
  int stopped;
  TRY(steps_take(j, &counts, &stopped));
  if (stopped) return OK;
  TRY(refit_state_finish(j, j->o->reroute));
  if (!j->run->stopped) TRY(refit_held_out_evaluate(j));
  if (j->run->stopped) return OK;
  j->files.facts.sweeps++;
  if (j->c->rank == 0) line_add(j, &counts);
  TRY(refit_sweep_publish(j));
  return j->o->reroute && j->files.facts.sweeps < j->o->sweeps ? refit_classes_find(j) : OK;
}

static int sweeps_take(struct refit_job *j)
{
  while (j->files.facts.sweeps < j->o->sweeps && !j->run->stopped) {
    int stop = 0;
    if (j->files.facts.sweeps > 0) TRY(job_poll(&j->files.job, &stop));
    if (!stop) TRY(sweep_run(j));
    if (!j->run->stopped) j->run->max_seconds = j->o->max_seconds;
  }
  return OK;
}

int refit_sweeps_run(struct refit_job *j)
{
  TRY(steps_open(j));
  TRY(comm_agree(j->c, refit_beside_begin(j)));
  stop_listen();
  return refit_sweeps_settle(j, sweeps_take(j));
}
