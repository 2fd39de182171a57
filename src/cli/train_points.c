/* SPDX-License-Identifier: BSD-3-Clause
 * A point is a line of figures, or a state that can be saved. */
#include "cli/train_points.h"

#include "base/log.h"
#include "base/status.h"
#include "cli/train_report.h"
#include "job/stop.h"

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
  return lines_copy(&j->arena, &j->lines, &j->lines_max, p->lines, p->count, sizeof *j->lines);
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
  job->summary = train_summary_json;
  job->of = j;
  j->sink = (struct train_sink){j, point_take, job_stops(job), job_wishes(job)};
}
