/* SPDX-License-Identifier: BSD-3-Clause
 * Entries that are those of a fit; job/summary.h has the others. */
#include "cli/fit_summary.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
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

int fit_summary(const void *of, struct json *j)
{
  device_json(of, j);
  task_json(of, j);
  lines_json(of, j);
  end_json(of, j);
  return OK;
}
