/* SPDX-License-Identifier: BSD-3-Clause
 * What a sweep gave is written while the next one computes (job/checkpoint.h). */
#include "cli/fit_sweeps.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/fit_report.h"
#include "job/agreement.h"
#include "job/stop.h"

/* What is told at the end. */
static void sweep_note(struct fit_job *j, const struct fit_point *at, gidx best)
{
  j->best = at->lines[best];
  if (at->mean) memcpy(j->mean, at->mean, (size_t)j->rows.source.p * sizeof *j->mean);
}

/* What is published from here on names the rows; of those that are in memory part by part, each
 * sweep has others. */
static int inputs_name(struct fit_job *j, uint64_t rows, uint64_t held)
{
  struct identity_text *t = &j->run->identity;
  if (!j->files.has_parts) TRY(identity_text_hash(t, "rows_hash", rows));
  return identity_text_hash(t, "held_out_hash", held);
}

/* What fit_run() calls after each sweep.  The list of inputs, and how long writing took, are the
 * worker's while it publishes. */
static int sweep_take(void *self, const struct fit_sweep *s)
{
  struct fit_job *j = self;
  struct comm *c = &j->run->comm;
  if (c->rank == 0) fit_line_log(j, s);
  TRY(job_wait(&j->files.job));
  j->written = j->result.phases[FIT_WRITE];
  TRY(comm_agree(c, inputs_name(j, s->point.rows_hash, s->point.held_out_hash)));
  sweep_note(j, &s->point, s->best);
  j->seconds = log_seconds() - j->begun;
  j->has_sweep = 1;
  return fit_files_publish(&j->files, s);
}

/* What it asks before each. */
static int stop_poll(void *self, int *stop)
{
  struct fit_job *j = self;
  return job_poll(&j->files.job, stop);
}

static struct sweep_facts within_facts(const struct fit_within *now)
{
  return (struct sweep_facts){
      .sweeps = now->sweep,
      .classes = now->classes,
      .start = {.inputs.rows = now->rows_hash, .held.rows = now->held_out_hash}};
}

/* What fit_run() calls where a sweep begins that may be left, and then inside it. */
static int within_begin(void *self, const struct fit_within *now, struct sweep_start *start)
{
  struct fit_job *j = self;
  const struct sweep_facts facts = within_facts(now);
  struct sweep_files *files = &j->files.sweep;
  files->k = j->task.k;
  files->d = j->task.d;
  files->p = j->rows.source.p;
  files->there = files->there && j->files.job.is_resumed; /* else it is about to be removed */
  TRY(inputs_name(j, now->rows_hash, now->held_out_hash));
  return sweep_files_begin(files, &facts, now->atoms, start);
}

static int within_poll(void *self, const struct fit_within *now, const struct sweep_point *at,
                       int *stop)
{
  struct fit_job *j = self;
  const struct sweep_facts facts = within_facts(now);
  return sweep_files_poll(&j->files.sweep, &facts, at, stop);
}

/* While rows are routed and coded: only where there is something to go on from. */
static int may_stop(void *of)
{
  const struct fit_job *j = of;
  return j->files.job.is_resumed || j->has_sweep || j->files.sweep.saves;
}

void fit_sweeps_begin(struct fit_job *j)
{
  const struct fit_point *start = j->task.start;
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->save_seconds = j->o->save_seconds;
  job->summary = fit_summary_json;
  job->of = j;
  j->sink = (struct fit_sink){j,           sweep_take,     stop_poll,      within_begin,
                              within_poll, job_stops(job), job_wishes(job)};
  if (start) sweep_note(j, start, fit_best(start->lines, start->sweep));
}

int fit_sweeps_end(struct fit_job *j, int status)
{
  TRY(job_settle(&j->files.job, status, &j->result.phases[FIT_SHOW]));
  TRY(inputs_confirm(&j->run->comm));
  if (!j->run->stopped) sweep_files_over(&j->files.sweep, j->files.reached.sweep);
  return OK;
}
