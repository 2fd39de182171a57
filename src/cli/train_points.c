/* SPDX-License-Identifier: BSD-3-Clause
 * A point is a line of figures, or a state that can be saved. */
#include "cli/train_points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/train_report.h"
#include "job/stop.h"
#include "job/summary.h"

/* Between two looks for a file called STOP; and how long a run goes on however late it is, so that
 * it gets somewhere: for so many steps, or seconds of them where they are long. */
static const real POLL_SECONDS = 0.25, LEAST_SECONDS = 1;
enum { LEAST_STEPS = 16 };

/* The lines for run.json. */
static int lines_take(struct train_job *j, const struct train_point *p)
{
  j->inputs.rows = p->rows_hash;
  j->step = p->step;
  j->count = p->count;
  if (p->count > j->lines_max) {
    j->lines_max = 2 * p->count;
    TRY(arena_alloc(&j->arena, &j->lines, j->lines_max, sizeof *j->lines));
  }
  memcpy(j->lines, p->lines, (size_t)p->count * sizeof *p->lines);
  return OK;
}

/* Of lines of an earlier run the files know no times. */
static void lines_json(const struct train_job *j, struct json *own)
{
  json_array(own, "lines");
  for (gidx i = 0; i < j->count; i++) {
    const struct train_line *l = &j->lines[i];
    int is_old = i < j->files.start.count;
    json_object(own, NULL);
    json_long(own, "step", l->step);
    json_real(own, "unseen", l->held);
    json_real(own, "batches", l->fitted);
    json_long(own, "dead", l->dead);
    if (j->task.sizes.l0 > 0) json_real(own, "l0", is_old ? nan_canonical() : l->l0);
    json_real(own, "seconds", is_old ? nan_canonical() : l->seconds);
    json_end(own);
  }
  json_end(own);
}

/* At the end, or while the run goes on. */
static int points_json(const void *of, struct json *own)
{
  const struct train_job *j = of;
  const struct train_result *r = &j->result;
  const struct train_line *last = &j->lines[j->count - 1];
  summary_device_set(r->device);
  summary_inputs_set(&j->inputs);
  json_long(own, "rows", r->fitted_rows);
  json_long(own, "held_rows", r->held_rows);
  json_long(own, "left_out_rows", j->outliers.count[0] + j->outliers.count[1]);
  json_long(own, "columns", j->rows.source.p);
  json_long(own, "atoms", j->task.sizes.k);
  if (j->task.sizes.l0 > 0)
    json_real(own, "l0_target", j->task.sizes.l0);
  else
    json_long(own, "top_s", r->top_s);
  json_long(own, "batch", j->task.batch);
  json_text(own, "precision", j->o->precision);
  json_long(own, "steps", j->has_ended ? r->steps : j->step);
  lines_json(j, own);
  json_real(own, "unseen", last->held);
  json_real(own, "batches", last->fitted);
  json_long(own, "dead", last->dead);
  if (j->task.sizes.l0 > 0) json_real(own, "l0", last->l0);
  if (j->has_ended) json_hash(own, "fingerprint", r->fingerprint);
  json_text(own, "end", j->has_ended && !r->stopped ? "steps" : NULL);
  return OK;
}

/* What train_run() calls with each line, and with what can be saved. */
static int point_take(void *self, const struct train_point *p, enum train_reason why)
{
  struct train_job *j = self;
  struct comm *c = &j->run->comm;
  while (j->shown < p->count)
    if (c->rank == 0)
      train_line_log(j, p);
    else
      j->shown++;
  if (why == TRAIN_LINE) return OK;
  if (why == TRAIN_END && c->rank == 0) train_outcome_check(j, p);
  TRY(comm_agree(c, lines_take(j, p)));
  return train_files_publish(&j->files, p, why == TRAIN_END);
}

/* Always; by --max-seconds not before it got somewhere. */
static int may_stop(void *of)
{
  struct train_job *j = of;
  real now = log_seconds();
  gidx steps = j->polls++;
  if (steps == 0) j->stepped = now;
  if (steps >= LEAST_STEPS || (steps > 0 && now - j->stepped >= LEAST_SECONDS))
    j->run->max_seconds = j->o->max_seconds;
  return 1;
}

void train_points_sink(struct train_job *j)
{
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->poll_seconds = POLL_SECONDS; /* steps may be short, and a file system far away */
  job->saves = 1;
  job->save_seconds = j->o->save_seconds;
  job->summary = points_json;
  job->of = j;
  j->sink = (struct train_sink){j, point_take, job_stops(job), job_wishes(job)};
}
