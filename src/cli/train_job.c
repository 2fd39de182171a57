/* SPDX-License-Identifier: BSD-3-Clause
 * Lines are logged between steps, and the report at the end. */
#include "cli/train_job.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "job/summary.h"
#include "cli/report.h"
#include "io/matrix.h"
#include "model/advice.h"
#include "model/split.h"
#include "train/forecast.h"

/* Sizes of the files in bytes.  state.h5 also has the moments of all weights.  A new state.h5, or
 * dictionary.h5, exists beside the last state.h5 until it is complete. */
struct files {
  gidx dictionary, state, disk;
};

static struct files files_find(const struct train_job *j)
{
  idx k = j->task.sizes.k, p = j->rows.source.p;
  gidx weights = 0;
  for (int i = 0; i < TRAIN_ARRAYS; i++) weights += train_numbers(k, p, i);
  struct files f = {matrix_bytes(weights), matrix_bytes(3 * weights), 0};
  f.disk = f.state + imax(f.state, f.dictionary);
  return f;
}

static void plan_json(struct json *o, const struct train_job *j, const struct train_forecast *f)
{
  const struct train_memory *m = &f->m;
  const struct files files = files_find(j);
  json_long(o, "rows", f->fitted);
  json_long(o, "held_rows", f->held);
  json_long(o, "columns", j->rows.source.p);
  json_long(o, "atoms", j->task.sizes.k);
  json_long(o, "batch", j->task.batch);
  json_long(o, "rank_rows", ceil_div(j->task.batch, j->run->comm.size));
  json_long(o, "steps", f->steps);
  json_real(o, "multiply_adds", f->scores);
  json_object(o, "rank_bytes");
  json_long(o, "most", m->total);
  json_long(o, "weights", m->weights + m->beside);
  json_long(o, "rows", m->rows);
  json_long(o, "steps", m->steps);
  json_long(o, "evaluation", m->evaluate);
  json_end(o);
  json_long(o, "gpu_bytes", m->gpu);
  json_long(o, "present_bytes", memory_per_process(j->run->comm.local_size));
  json_object(o, "file_bytes");
  json_long(o, "dictionary.h5", files.dictionary);
  json_long(o, "state.h5", files.state);
  json_end(o);
  json_long(o, "disk_bytes", files.disk);
}

static void plan_lines(const struct train_job *j, const struct train_forecast *f)
{
  const struct train_memory *m = &f->m;
  const struct files files = files_find(j);
  int ranks = j->run->comm.size;
  printf("train       %lld steps of %d rows, up to %lld a rank\n", (long long)f->steps,
         j->task.batch, (long long)ceil_div(j->task.batch, ranks));
  printf("rows        %lld x %d to learn from, %lld held out\n", (long long)f->fitted,
         j->rows.source.p, (long long)f->held);
  printf("atoms       %d x %d, all on every rank\n", j->task.sizes.k, j->rows.source.p);
  printf("work        scores: %.3g multiply-adds, %.3g a rank\n", f->scores, f->scores / ranks);
  printf("memory      %.1f MB a rank: weights and moments %.1f, rows %.1f, steps %.1f, evaluation "
         "%.1f\n",
         1e-6 * (double)m->total, 1e-6 * (double)(m->weights + m->beside), 1e-6 * (double)m->rows,
         1e-6 * (double)m->steps, 1e-6 * (double)m->evaluate);
  if (m->gpu) printf("GPU         %.1f MB per GPU\n", 1e-6 * (double)m->gpu);
  report_present(m->total, memory_per_process(j->run->comm.local_size));
  printf(
      "disk        %.1f MB at a time: state.h5 %.1f, and the next one, then dictionary.h5 %.1f\n",
      1e-6 * (double)files.disk, 1e-6 * (double)files.state, 1e-6 * (double)files.dictionary);
}

/* Held-out rows are scored for each line; line 0 is written before the first step.  For each line
 * the weights are copied from the GPU.  The thread that gives work to a GPU also waits for rows. */
static void times_find(const struct train_job *j, const struct train_forecast *f,
                       const struct rates *r, struct times *t)
{
  double k = j->task.sizes.k, p = j->rows.source.p, batch = j->task.batch;
  double steps = (double)f->steps, lines = 1 + (double)ceil_div(f->steps, imax(f->every, 1));
  double read = (steps * batch + (double)f->held + (double)f->fitted) * j->rows.source.row_bytes;
  times_add(t, "step", steps * batch * k * p / rate_at(r, RATE_STEP, p, k, batch));
  times_add(t, "judge", lines * (double)f->held * k * p / rate_at(r, RATE_SCORES, p, k, batch));
  if (t->overlap) {
    times_add(t, "read", read / rate_at(r, RATE_READ, 1, 1, 1));
    times_add(t, "copy", lines * 2 * sizeof(float) * k * p / rate_at(r, RATE_READ, 1, 1, 1));
  } else
    times_beside(t, "read", read / rate_at(r, RATE_READ, 1, 1, 1));
}

int train_plan_show(struct train_job *j, const char *rates)
{
  struct train_forecast f;
  struct json o;
  struct plan_rates r;
  struct times t;
  j->task.beside = (gidx)j->arena.bytes;
  TRY(train_forecast(&j->task, &j->run->comm, &f));
  TRY(report_rates_read(j->run, rates, j->task.threads, j->task.device, &r, &t));
  if (r.path) times_find(j, &f, &r.rates, &t);
  if (!j->run->wants_json) {
    plan_lines(j, &f);
    return report_times(&r, &t);
  }
  TRY(facts_begin(j->run, &o));
  plan_json(&o, j, &f);
  TRY(report_times_json(&r, &t, &o));
  return facts_end(&o);
}

/* Log the next line, with the rows per second and the seconds that are left. */
static void line_log(struct train_job *j, const struct train_point *p)
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

void train_lines_log(struct train_job *j, const struct train_point *p)
{
  while (j->shown < p->count)
    if (j->run->comm.rank == 0)
      line_log(j, p);
    else
      j->shown++;
}

static void outcome_check(const struct train_job *j, const struct train_point *p)
{
  const struct train_line *last = &p->lines[p->count - 1];
  int has_held_out = j->result.held_out_rows > 0;
  real explained = has_held_out ? last->held : last->fitted;
  if (p->step > 0 && !(explained >= 0))
    log_warn_named("negative-variance",
                   "what was learned explains %.6g of the %s rows, and no atoms at all explain 0: "
                   "lower --lr, which is %g, or take more steps",
                   explained, has_held_out ? "unseen" : "last", j->task.rate.most);
}

int train_point_note(struct train_job *j, const struct train_point *p, enum train_reason why)
{
  if (why == TRAIN_END && j->run->comm.rank == 0) outcome_check(j, p);
  j->inputs.rows = p->rows_hash;
  j->step = p->step;
  j->count = p->count;
  return lines_copy(&j->arena, &j->lines, &j->lines_max, p->lines, p->count, sizeof *j->lines);
}

/* out <- the number of codes of a row, as text: l0 on average, or the same number in each row. */
static void codes_format(const struct train_job *j, const char *form, idx s, char out[48])
{
  if (j->task.sizes.l0 > 0)
    snprintf(out, 48, "l0=%.17g", j->task.sizes.l0);
  else
    snprintf(out, 48, "%s=%d", form, s);
}

void train_report(const struct train_job *j)
{
  const struct train_result *r = &j->result;
  char codes[48];
  codes_format(j, "top_s", r->top_s, codes);
  log_info("train   rows=%lld held_out=%lld atoms=%d %s batch=%d steps=%lld ranks=%d "
           "device='%s' seconds=%.2f fingerprint=%016llx",
           (long long)r->fitted_rows, (long long)r->held_out_rows, j->task.sizes.k, codes,
           j->task.batch, (long long)r->steps, j->run->comm.size, r->device,
           log_seconds() - j->begun, (unsigned long long)r->fingerprint);
  if (r->held_out_rows) log_info("%-22s %.6g", "unseen rows", j->lines[j->count - 1].held);
  if (r->held_out_rows == 0)
    log_warn_named("few-held-out",
                   "no rows were held out: what is explained of unseen rows is not known; give "
                   "--holdout or --holdout-share, or encode other rows");
  else if (r->held_out_rows < 10 * SPLIT_WINDOW)
    log_warn_named(
        "few-held-out",
        "%lld rows were held out: what is explained of unseen rows is uncertain, and is best "
        "judged by rows of another source (--holdout)",
        (long long)r->held_out_rows);
  gidx rows = j->task.sizes.dead_rows ? j->task.sizes.dead_rows : r->fitted_rows;
  advice_unused(j->lines[j->count - 1].dead, j->task.sizes.k, rows);
  log_info("wrote   %s", j->files.job.place.shown);
}

int train_summary_json(const void *of, struct json *own)
{
  const struct train_job *j = of;
  const struct train_result *r = &j->result;
  const struct train_line *last = &j->lines[j->count - 1];
  struct line_form form = train_line_form;
  form.without = j->task.sizes.l0 > 0 ? NULL : "l0";
  summary_device_set(r->device);
  summary_inputs_set(&j->inputs);
  json_long(own, "rows", r->fitted_rows);
  json_long(own, "held_rows", r->held_out_rows);
  json_long(own, "left_out_rows", j->outliers.count[0] + j->outliers.count[1]);
  json_long(own, "columns", j->rows.source.p);
  json_long(own, "atoms", j->task.sizes.k);
  if (j->task.sizes.l0 > 0)
    json_real(own, "l0_target", j->task.sizes.l0);
  else
    json_long(own, "top_s", r->top_s);
  json_long(own, "batch", j->task.batch);
  json_text(own, "precision", j->precision);
  json_long(own, "steps", j->has_ended ? r->steps : j->step);
  json_array(own, "lines");
  lines_json(&form, j->lines, j->count, j->files.start.count, own);
  json_end(own);
  json_real(own, "unseen", last->held);
  json_real(own, "batches", last->fitted);
  json_long(own, "dead", last->dead);
  if (j->task.sizes.l0 > 0) json_real(own, "l0", last->l0);
  if (j->has_ended) json_hash(own, "fingerprint", r->fingerprint);
  json_text(own, "end", j->has_ended && !r->stopped ? "steps" : NULL);
  return OK;
}
