/* SPDX-License-Identifier: BSD-3-Clause
 * What a sweep gave is written while the next one computes (job/checkpoint.h). */
#include "cli/fit_sweeps.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/fit_report.h"
#include "job/agreement.h"
#include "job/stop.h"
#include "job/summary.h"

/* What computes is known from the first sweep on: "cpu avx512", "cuda" and the GPU's name. */
static void device_json(const struct fit_job *f, struct json *j)
{
  const char *device = f->result.device, *space = strchr(device, ' ');
  char kind[16];
  snprintf(kind, sizeof kind, "%.*s", space ? (int)(space - device) : 0, device);
  json_long(j, "threads", f->task.threads);
  json_text(j, "device", *kind ? kind : NULL);
  json_text(j, "variant", space ? space + 1 : NULL);
}

static void input_json(struct json *j, const char *key, const char *name, uint64_t hash)
{
  json_object(j, key);
  json_text(j, "name", name);
  json_hash(j, "rows_hash", hash);
  json_end(j);
}

static void task_json(const struct fit_job *f, struct json *j)
{
  const struct fit_task *t = &f->task;
  const struct fit_point *reached = &f->files.reached;
  const gidx *left_out = f->outliers.count;
  const char *rows = f->o->rows ? f->o->rows : f->o->capture;
  json_object(j, "inputs");
  input_json(j, "rows", rows, reached->rows_hash);
  if (f->result.held_rows)
    input_json(j, "held_out", f->o->holdout ? f->o->holdout : rows, reached->held_hash);
  json_end(j);
  json_long(j, "rows", f->result.fitted_rows);
  json_long(j, "held_rows", f->result.held_rows);
  json_long(j, "left_out_rows", left_out[0] + left_out[1]);
  json_long(j, "columns", t->rows->p);
  json_long(j, "atoms", t->k);
  json_long(j, "top_s", f->result.top_s);
  json_long(j, "rounds", t->rounds);
  json_text(j, "codes", t->nonnegative ? "nonnegative" : "signed");
  json_text(j, "update", t->update == UPDATE_JOINT ? "joint" : "atoms");
  json_long(j, "minibatch", t->minibatch);
  json_text(j, "minibatch_from", f->parts.from);
}

/* Of sweeps of an earlier run the files know neither moves nor times. */
static void line_json(const struct fit_job *f, const struct fit_line *l, struct json *j)
{
  const struct fit_point *start = f->task.start;
  real none = nan_canonical();
  int is_own = !start || l->sweep > start->sweep;
  json_object(j, NULL);
  json_long(j, "sweep", l->sweep);
  json_real(j, "unseen", l->held);
  json_real(j, "fitted", l->fitted);
  json_long(j, "dead", l->dead);
  json_long(j, "revived", l->revived);
  json_long(j, "accepted", l->accepted);
  json_long(j, "rejected", l->rejected);
  json_long(j, "escalated", l->escalated);
  json_real(j, "move", is_own ? l->move : none);
  json_real(j, "seconds", is_own ? l->seconds : none);
  json_end(j);
}

static void lines_json(const struct fit_job *f, struct json *j)
{
  const struct fit_line *lines = f->files.reached.lines;
  gidx best = f->files.reached_best;
  json_array(j, "sweeps");
  for (gidx i = 0; i <= f->files.reached.sweep; i++) line_json(f, &lines[i], j);
  json_end(j);
  json_long(j, "best_sweep", best);
  json_real(j, "unseen", lines[best].held);
  json_real(j, "fitted", lines[best].fitted);
}

static void end_json(const struct fit_job *f, struct json *j)
{
  static const char *const ends[] = {
      [FIT_SETTLED] = "tolerance", [FIT_SWEEPS] = "sweeps", [FIT_SECONDS] = "max-seconds"};
  json_real(j, "seconds", f->seconds);
  json_text(j, "end", f->has_ended ? ends[f->result.end] : NULL);
  if (!f->has_ended) return;
  json_long(j, "encode_s", f->files.top_s);
  json_real(j, "unseen_encoded", f->held_out_explained);
  stability_json(&f->stable, j);
  metrics_json(&f->encoded.metrics, 1, j);
  json_hash(j, "fingerprint", f->encoded.fingerprint);
}

/* What a fit adds to run.json (job/summary.h) after each sweep. */
static int summary_json(const void *of, struct json *j)
{
  device_json(of, j);
  task_json(of, j);
  lines_json(of, j);
  end_json(of, j);
  return OK;
}

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
  TRY(comm_agree(c, inputs_name(j, s->point.rows_hash, s->point.held_hash)));
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
      .start = {.inputs.rows = now->rows_hash, .held.rows = now->held_hash}};
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
  TRY(inputs_name(j, now->rows_hash, now->held_hash));
  return sweep_files_begin(files, &facts, now->atoms, start);
}

static int within_poll(void *self, const struct fit_within *now, const struct sweep_point *at,
                       int *stop)
{
  struct fit_job *j = self;
  const struct sweep_facts facts = within_facts(now);
  return sweep_files_poll(&j->files.sweep, &facts, at, j->result.device, j->task.threads, stop);
}

/* While rows are routed and coded: only where there is something to go on from. */
static int may_stop(void *of)
{
  const struct fit_job *j = of;
  return j->files.job.is_resumed || j->has_sweep || j->files.sweep.saves;
}

int fit_sweeps_run(struct fit_job *j)
{
  const struct fit_point *start = j->task.start;
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->save_seconds = j->o->save_seconds;
  job->summary = summary_json;
  job->of = j;
  j->sink = (struct fit_sink){j,           sweep_take,     stop_poll,      within_begin,
                              within_poll, job_stops(job), job_wishes(job)};
  if (start) sweep_note(j, start, fit_best(start->lines, start->sweep));
  int status = fit_run(&j->task, &j->run->comm, &j->sink, &j->result);
  TRY(job_settle(job, status, &j->result.phases[FIT_SHOW]));
  TRY(inputs_confirm(&j->run->comm));
  if (!j->run->stopped) sweep_files_over(&j->files.sweep, j->files.reached.sweep);
  return OK;
}
