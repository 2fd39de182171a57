/* SPDX-License-Identifier: BSD-3-Clause
 * The rest of a fit is foretold from its last sweep. */
#include "cli/fit_report.h"

#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "base/num.h"
#include "model/advice.h"
#include "cli/fit_seeds.h"
#include "cli/report.h"
#include "model/split.h"

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
