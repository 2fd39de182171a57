/* SPDX-License-Identifier: BSD-3-Clause
 * The rest of a fit is foretold from its last sweep. */
#include "cli/fit_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/advice.h"
#include "cli/fit_seeds.h"
#include "cli/report.h"
#include "job/summary.h"
#include "model/split.h"

#define MEMBER(key, type, name, column) LINE_MEMBER(struct fit_line, key, type, name, column)
static const struct line_member members[] = {
    MEMBER("sweep", LINE_LONG, sweep, 1),       MEMBER("unseen", LINE_REAL, held, 3),
    MEMBER("fitted", LINE_REAL, fitted, 2),     MEMBER("dead", LINE_LONG, dead, 4),
    MEMBER("revived", LINE_LONG, revived, 5),   MEMBER("accepted", LINE_LONG, accepted, 6),
    MEMBER("rejected", LINE_LONG, rejected, 7), MEMBER("escalated", LINE_LONG, escalated, 8),
    MEMBER("move", LINE_REAL, move, 0),         MEMBER("seconds", LINE_REAL, seconds, 0),
};
const struct line_form fit_line_form = {sizeof(struct fit_line), HISTORY_COLUMNS, LENGTH(members),
                                        members, NULL};

/* Seconds of what follows the last sweep, where one takes so long: all rows are coded, in the time
 * of a pass over them at most; their file and dictionary.h5 are published as sweeps were.  How fast
 * a file of many bytes is written, those of small dictionaries do not tell. */
static real end_seconds(const struct fit_job *j, const struct fit_sweep *s, real spent)
{
  static const real LEAST_PACE = 1e8; /* bytes a second: hashed, written, read back and synced */
  const struct phase *write = &j->written;
  real rows = (real)j->rows.source.n, entry = sizeof(idx) + sizeof(float);
  real pass = spent * (real)s->parts * rows / (real)s->fitted_rows;
  if (write->calls == 0) return pass;
  real pace = fmin(write->seconds / write->work, 1 / LEAST_PACE);
  return pass + 2 * write->seconds / (real)write->calls + rows * j->files.top_s * entry * pace;
}

void fit_line_log(const struct fit_job *j, const struct fit_sweep *s)
{
  const struct fit_point *at = &s->point;
  const struct fit_line *l = &at->lines[at->sweep];
  real spent = at->sweep ? l->seconds - at->lines[at->sweep - 1].seconds : 0;
  real most = (real)(j->task.sweeps * s->parts);
  char pace[96] = "";
  if (spent > 0)
    snprintf(pace, sizeof pace, ", %.0f rows/s, at most %.1f s left",
             (real)s->fitted_rows / (real)s->parts / spent,
             spent * (most - (real)at->sweep) + end_seconds(j, s, spent));
  log_info("sweep %3lld: unseen %.6f, fitted %.6f, dead %lld, revived %lld, largest move %.2g%s",
           (long long)at->sweep, l->held, l->fitted, (long long)l->dead, (long long)l->revived,
           l->move, pace);
}

void fit_report(struct fit_job *j)
{
  static const char *const reasons[] = {
      [FIT_SETTLED] = "the gain of five passes over the rows is below --tolerance",
      [FIT_SWEEPS] = "that is --sweeps",
      [FIT_SECONDS] = "another sweep would exceed --max-seconds",
  };
  const struct fit_result *r = &j->result;
  log_info("fit     rows=%lld held_out=%lld atoms=%d top_s=%d rounds=%d sweeps=%lld ranks=%d "
           "device='%s' seconds=%.2f fingerprint=%016llx",
           (long long)r->fitted_rows, (long long)r->held_rows, j->task.k, r->top_s, j->task.rounds,
           (long long)r->sweeps, j->run->comm.size, r->device, j->seconds,
           (unsigned long long)j->encoded.fingerprint);
  log_info("ended after sweep %lld: %s; the best is sweep %lld", (long long)r->sweeps,
           reasons[r->end], (long long)r->best);
  if (r->held_rows) log_info("%-22s %.6g", "unseen rows", j->best.held);
  if (!isnan(j->held_out_explained))
    log_info("%-22s %.6g, with %d atoms a row", "", j->held_out_explained, j->files.top_s);
  if (r->held_rows) advice_explained(j->best.held, "the unseen rows");
  log_info("%-22s %.6g, with --rho", "fitted rows", j->best.fitted);
  fit_seeds_log(j);
  if (r->held_rows == 0)
    log_warn_named("few-held-out",
                   "no rows were held out: what the fit explains of unseen rows is not known; give "
                   "--holdout or --holdout-share, or encode others");
  else if (r->held_rows < 10 * SPLIT_WINDOW)
    log_warn_named(
        "few-held-out",
        "%lld rows were held out: what the fit explains of unseen rows is uncertain, and is "
        "best judged by rows of another source (--holdout)",
        (long long)r->held_rows);
  if (j->o->holdout || r->held_rows == 0)
    log_info("all rows of --rows, which were fitted:");
  else
    log_info("all rows of --rows, of which %lld were fitted:", (long long)r->fitted_rows);
  if (j->task.center) j->encoded.metrics.massive = (struct massive_rows){0}; /* told at the start */
  report_metrics(&j->encoded.metrics, 1);
  advice_dead(j->encoded.metrics.dead_atoms, j->task.k);
  if (r->end == FIT_SWEEPS) advice_converged(r->sweeps, r->gain, j->task.tolerance);
  log_info("wrote   %s", j->files.job.place.shown);
  log_info("wrote   %s", j->files.job.more[FIT_SUPPORTS].shown);
}

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

static void sweeps_json(const struct fit_job *f, struct json *j)
{
  const struct fit_line *lines = f->files.reached.lines;
  const struct fit_point *start = f->task.start;
  gidx best = f->files.reached_best;
  json_array(j, "sweeps");
  lines_json(&fit_line_form, lines, f->files.reached.sweep + 1, start ? start->sweep + 1 : 0, j);
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

int fit_summary_json(const void *of, struct json *j)
{
  device_json(of, j);
  task_json(of, j);
  sweeps_json(of, j);
  end_json(of, j);
  return OK;
}
