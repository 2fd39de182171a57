/* SPDX-License-Identifier: BSD-3-Clause
 * The functions that refit_files.c calls, in its order. */
#include "cli/refit_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "job/stop.h"
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

/* Metrics and residuals of the same codes differ far less than this, by rounding only. */
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
             "were they solved for others?",
             file, said, *explained);
  return OK;
}

int refit_start_evaluate(struct refit_job *j)
{
  const struct supports_input *supports = &j->inputs.supports;
  real is = 0;
  refit_start_note(&j->files.facts.start, &j->inputs, &j->state);
  TRY(refit_state_evaluate(j, supports->source.name, supports->explained_variance, &is));
  j->files.facts.start.held.rows = j->validation.hash;
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

void refit_line_add(struct refit_job *j, const struct sweep_counts *counts)
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

/* If this rank's GPU has all rows, they stay there from sweep to sweep. */
static int rows_settle(struct refit_job *j)
{
  struct refit_state *f = &j->state;
  if (j->rows->size > 1 || !j->coder.device.backend) return OK;
  if (!strcmp(j->coder.device.kind, "cpu")) return OK;
  TRY(coded_open(&j->coder, &j->coded, f->n, f->first, f->x, f->atoms, f->score));
  TRY(coded_put(&j->coder, &j->coded, f->codes));
  return resident_open(&j->resident, f, &j->coder, &j->coded, f->table, j->o->directions);
}

int refit_steps_open(struct refit_job *j)
{
  int status = rows_settle(j);
  uint64_t lacks = !j->resident.is_on;
  TRY(comm_agree_flags(j->c, status, 0, &lacks));
  if (!lacks) return OK;
  resident_close(&j->resident);
  coded_close(&j->coder, &j->coded);
  return OK;
}
