/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep is published before the next one begins, or beside those that follow where a GPU takes
 * the steps: then those that end before it is there are left out, but for the last one. */
#include "cli/refit_sweeps.h"

#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/team.h"
#include "cli/refit_steps.h"
#include "job/agreement.h"
#include "job/stop.h"
#include "model/identity.h"
#include "refit/frames.h"
#include "refit/sweep_end.h"

/* Only where there is something to go on from, and for --max-seconds where some of that is of this
 * run, so that runs get further.  Where the sweep before is left out this one is ended, so that it
 * is published in its place. */
int refit_may_stop(void *of)
{
  struct refit_job *j = of;
  if (j->is_left_out) return 0;
  int has_more = j->files.facts.sweeps > j->resumed || j->files.sweep.times_saved;
  j->run->max_seconds = has_more ? j->o->max_seconds : 0;
  return has_more || j->files.job.is_resumed;
}

/* Publish what a sweep gave, or let that begin. */
static int sweep_hand_over(struct refit_job *j)
{
  struct phase *wait = &j->phases[REFIT_WAIT];
  int is_beside = j->files.job.writes_beside;
  if (is_beside) phase_begin(wait);
  TRY(refit_files_publish(&j->files));
  if (is_beside) phase_end(wait, 0);
  j->is_left_out = 0;
  j->handed_over = log_seconds();
  return OK;
}

/* While a state is published, may this one be left out?  A later one will say all that it does; but
 * what a job that is killed loses is no older than --save-seconds. */
static int may_be_left_out(struct refit_job *j)
{
  struct job *job = &j->files.job;
  return j->files.facts.sweeps < j->o->sweeps && job_is_saving(job) &&
         (job->save_seconds == 0 || log_seconds() - j->handed_over < job->save_seconds);
}

static int sweep_publish(struct refit_job *j)
{
  j->is_left_out = may_be_left_out(j);
  if (!j->is_left_out) return sweep_hand_over(j);
  j->files.facts.contents = j->state.contents;
  return OK;
}

/* Between two atoms: the sweep is saved where that is due, and the job may end.  A run takes some
 * steps, however long all else took. */
static int steps_poll(void *self, const struct sweep_point *at, int *stop)
{
  struct refit_job *j = self;
  TRY(sweep_files_poll(&j->files.sweep, &j->in_work, at, stop));
  j->run->max_seconds = j->o->max_seconds;
  return OK;
}

/* What sweep comes next, and what a run that is resumed has done of it. */
static int sweep_find(struct refit_job *j)
{
  const struct fit_facts *facts = &j->files.facts;
  struct refit_state *f = &j->state;
  struct sweep_files *files = &j->files.sweep;
  files->k = f->k;
  files->d = f->d;
  files->p = f->p;
  files->write = &j->phases[REFIT_WRITE];
  j->in_work = (struct sweep_facts){.sweeps = facts->sweeps, .start = facts->start};
  j->in_work.classes = classes_hash(j->classes.color, f->k);
  if (facts->sweeps) j->in_work.contents = facts->contents;
  TRY(identity_text_hash(&j->run->identity, "held_out_hash", facts->start.held.rows));
  if (j->resident.is_on) return OK; /* which makes a whole sweep in the time that reading takes */
  if (files->there) TRY(refit_frames_table(f));
  return sweep_files_begin(files, &j->in_work, f->table, &j->begun);
}

/* Every atom takes a step. */
static int steps_take(struct refit_job *j, struct sweep_counts *counts, int *stopped)
{
  struct phase *phase = &j->phases[REFIT_STEPS];
  char what[64];
  *stopped = 0;
  TRY(comm_agree(j->c, sweep_find(j)));
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
  if (j->c->rank == 0) refit_line_add(j, &counts);
  TRY(sweep_publish(j));
  return j->o->reroute && j->files.facts.sweeps < j->o->sweeps ? refit_classes_find(j) : OK;
}

int refit_job_resume(struct refit_job *j)
{
  real is = 0;
  uint64_t hash = j->validation.hash, held = j->files.facts.start.held.rows;
  TRY(refit_resume(&j->previous, &j->files, &j->state));
  log_info("resumed after sweep %lld", (long long)j->files.facts.sweeps);
  TRY(refit_held_out_evaluate(j));
  if (j->run->stopped) return OK;
  CHECK(hash == held, ERR_INPUT,
        "'%s' was judged by other held-out rows: rows_hash %016llx, not %016llx; resume with the "
        "same '--holdout'",
        j->files.job.place.shown, (unsigned long long)held, (unsigned long long)hash);
  if (j->previous.has_supports)
    return refit_state_evaluate(j, j->files.job.more[REFIT_SUPPORTS].shown,
                                j->previous.supports.explained_variance, &is);
  TRY(refit_state_finish(j, j->o->reroute));
  if (j->run->stopped) return OK;
  TRY(comm_agree(j->c, refit_contents_check(&j->files, &j->state)));
  return refit_supports_publish(&j->files);
}

/* One rank, with a GPU that takes the steps, publishes beside them, if there is room for a copy of
 * the state. */
static int beside_begin(struct refit_job *j)
{
  struct phase *write = &j->phases[REFIT_WRITE];
  if (!j->resident.is_on || j->c->size > 1) return OK;
  TRY(state_copy_open(&j->files.copy, &j->state, &j->files.job.writes_beside));
  write->background = j->files.job.writes_beside;
  if (write->background) j->task.threads = team_beside(j->task.threads);
  return OK;
}

static int sweeps_take(struct refit_job *j)
{
  while (j->files.facts.sweeps < j->o->sweeps && !j->run->stopped) {
    int stop = 0;
    if (j->files.facts.sweeps > 0) TRY(job_poll(&j->files.job, &stop));
    if (!stop) TRY(sweep_run(j));
    if (!j->run->stopped) j->run->max_seconds = j->o->max_seconds;
  }
  return j->is_left_out ? sweep_hand_over(j) : OK;
}

int refit_sweeps_run(struct refit_job *j)
{
  TRY(refit_steps_open(j));
  TRY(comm_agree(j->c, beside_begin(j)));
  stop_listen();
  return job_settle(&j->files.job, sweeps_take(j), &j->phases[REFIT_WAIT]);
}
