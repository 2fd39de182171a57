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
#include "base/stop.h"
#include "job/agreement.h"
#include "job/content.h"
#include "cli/run_page.h"

/* Between two looks for a file called STOP, at least; and how long a run goes on however late it
 * is, so that it gets somewhere: for so many steps, or seconds of them where they are long. */
static const real LOOK_SECONDS = 0.25, LEAST_SECONDS = 1;
enum { LEAST_STEPS = 16 };

static void line_show(struct train_job *j, const struct train_point *p)
{
  const struct train_line *l = &p->lines[j->shown++];
  gidx all = j->task.steps ? j->task.steps : j->task.epochs * j->result.steps_each;
  const struct train_line *before = l > p->lines ? l - 1 : l;
  char pace[96] = "", codes[32] = "";
  real spent = l->seconds - before->seconds, steps = (real)(l->step - before->step);
  if (spent > 0 && steps > 0 && before->seconds > 0)
    snprintf(pace, sizeof pace, ", %.0f rows/s, %.0f s left", steps * j->task.batch / spent,
             spent / steps * (real)(all - l->step));
  if (j->task.sizes.l0 > 0 && !isnan(l->l0)) snprintf(codes, sizeof codes, ", l0 %.2f", l->l0);
  log_info("step %6lld of %lld: unseen %.6f%s, batches %.6f, dead %lld%s", (long long)l->step,
           (long long)all, l->held, codes, l->fitted, (long long)l->dead, pace);
}

/* The lines for run.json. */
static int lines_take(struct train_job *j, const struct train_point *p)
{
  j->inputs.rows = p->rows_hash;
  j->count = p->count;
  if (p->count > j->lines_max) {
    j->lines_max = 2 * p->count;
    TRY(arena_alloc(&j->arena, &j->lines, j->lines_max, sizeof *j->lines));
  }
  memcpy(j->lines, p->lines, (size_t)p->count * sizeof *p->lines);
  return OK;
}

/* Of lines of an earlier run the files know no times. */
static void lines_tell(const struct train_job *j, struct json *own)
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

int train_points_tell(const struct train_job *j, gidx steps, int is_end)
{
  const struct train_result *r = &j->result;
  const struct train_line *last = &j->lines[j->count - 1];
  struct json *own;
  run_page_device(r->device);
  run_page_inputs(&j->inputs);
  TRY(run_page_own(&own));
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
  json_long(own, "steps", steps);
  lines_tell(j, own);
  json_real(own, "unseen", last->held);
  json_real(own, "batches", last->fitted);
  json_long(own, "dead", last->dead);
  if (j->task.sizes.l0 > 0) json_real(own, "l0", last->l0);
  if (is_end) page_hash_tell(own, "fingerprint", r->fingerprint);
  json_text(own, "end", is_end && !r->stopped ? "steps" : NULL);
  return OK;
}

/* Rank 0: the files, and the page of a run that goes on; at the end it is written when phases are
 * known. */
static int point_write(struct train_job *j, const struct train_point *p, int is_end)
{
  TRY(train_files_write(&j->files, j->run, p, is_end));
  if (is_end || j->result.stopped) return OK;
  TRY(train_points_tell(j, p->step, 0));
  run_page_now(j->run);
  return OK;
}

/* Steps that are too long may end where all is finite, and nothing was learned. */
static void outcome_judge(const struct train_job *j, const struct train_point *p)
{
  const struct train_line *last = &p->lines[p->count - 1];
  int is_held = j->result.held_rows > 0;
  real explained = is_held ? last->held : last->fitted;
  if (p->step > 0 && !(explained >= 0))
    log_warn("what was learned explains %.6g of the %s rows, and no atoms at all explain 0: lower "
             "--lr, which is %g, or take more steps",
             explained, is_held ? "unseen" : "last", j->task.rate);
}

/* What train_run() calls with each line, and with what can be saved. */
static int point_take(void *self, const struct train_point *p, enum train_reason why)
{
  struct train_job *j = self;
  struct comm *c = &j->run->comm;
  while (j->shown < p->count)
    if (c->rank == 0)
      line_show(j, p);
    else
      j->shown++;
  if (why == TRAIN_LINE) return OK;
  if (why == TRAIN_END && c->rank == 0) outcome_judge(j, p);
  TRY(comm_agree(c, lines_take(j, p)));
  TRY(inputs_confirm(c));
  return comm_agree(c, c->rank ? OK : point_write(j, p, why == TRAIN_END));
}

/* Steps may be short, and a file system far away. */
static int may_stop(void *of)
{
  struct train_job *j = of;
  struct run *run = j->run;
  real now = log_seconds();
  gidx steps = j->looks++;
  if (steps == 0) j->stepped = now;
  if (steps >= LEAST_STEPS || (steps > 0 && now - j->stepped >= LEAST_SECONDS))
    run->max_seconds = j->o->max_seconds;
  int is_over = run->max_seconds > 0 && now >= run->max_seconds;
  if (steps > 0 && now - j->looked < LOOK_SECONDS && !is_over && !stop_signal()) return 0;
  j->looked = now;
  return 1;
}

void train_points_sink(struct train_job *j)
{
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->of = j;
  j->sink = (struct train_sink){j, point_take, j->o->save_seconds, job_stops(job), job_wishes(job)};
}
