/* SPDX-License-Identifier: BSD-3-Clause
 * Entries that are those of a fit; cli/run_page.h has the others. */
#include "cli/fit_page.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/run_page.h"

void fit_page_free(struct fit_page *p)
{
  arena_free(&p->arena);
  *p = (struct fit_page){0};
}

int fit_page_take(struct fit_page *p, const struct fit_point *point, gidx best)
{
  gidx n = point->sweep + 1;
  if (n > p->lines_max) {
    p->lines_max = 2 * n;
    TRY(arena_alloc(&p->arena, &p->lines, p->lines_max, sizeof *p->lines));
  }
  memcpy(p->lines, point->lines, (size_t)n * sizeof *p->lines);
  p->sweep = point->sweep;
  p->best = best;
  p->rows_hash = point->rows_hash;
  p->held_hash = point->held_hash;
  return OK;
}

/* What computes is known from the first sweep on: "cpu avx512", "cuda" and the GPU's name. */
static void device_tell(const struct fit_page *p, struct json *j)
{
  const char *device = p->result->device, *space = strchr(device, ' ');
  char kind[16];
  snprintf(kind, sizeof kind, "%.*s", space ? (int)(space - device) : 0, device);
  json_long(j, "threads", p->task->threads);
  json_text(j, "device", *kind ? kind : NULL);
  json_text(j, "variant", space ? space + 1 : NULL);
}

static void input_tell(struct json *j, const char *key, const char *name, uint64_t hash)
{
  json_object(j, key);
  json_text(j, "name", name);
  page_hash_tell(j, "rows_hash", hash);
  json_end(j);
}

static void task_tell(const struct fit_page *p, struct json *j)
{
  const struct fit_task *t = p->task;
  const char *held = p->holdout ? p->holdout : p->rows;
  json_object(j, "inputs");
  input_tell(j, "rows", p->rows, p->rows_hash);
  if (p->result->held_rows) input_tell(j, "held_out", held, p->held_hash);
  json_end(j);
  json_long(j, "rows", p->result->fitted_rows);
  json_long(j, "held_rows", p->result->held_rows);
  json_long(j, "left_out_rows", p->left_out[0] + p->left_out[1]);
  json_long(j, "columns", t->rows->p);
  json_long(j, "atoms", t->k);
  json_long(j, "top_s", p->result->top_s);
  json_long(j, "rounds", t->rounds);
  json_text(j, "codes", t->nonnegative ? "nonnegative" : "signed");
  json_text(j, "update", t->update == UPDATE_JOINT ? "joint" : "atoms");
  json_long(j, "minibatch", t->minibatch);
  json_text(j, "minibatch_from", p->parts->from);
}

/* Of sweeps of an earlier run the files know neither moves nor times. */
static void line_tell(const struct fit_page *p, const struct fit_line *l, struct json *j)
{
  real none = nan_canonical();
  int is_own = l->sweep > p->first;
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

static void lines_tell(const struct fit_page *p, struct json *j)
{
  json_array(j, "sweeps");
  for (gidx i = 0; i <= p->sweep; i++) line_tell(p, &p->lines[i], j);
  json_end(j);
  json_long(j, "best_sweep", p->best);
  json_real(j, "unseen", p->lines[p->best].held);
  json_real(j, "fitted", p->lines[p->best].fitted);
}

static void end_tell(const struct fit_page *p, struct json *j)
{
  static const char *const ends[] = {
      [FIT_SETTLED] = "tolerance", [FIT_SWEEPS] = "sweeps", [FIT_SECONDS] = "max-seconds"};
  json_real(j, "seconds", p->seconds);
  json_text(j, "end", p->encoded ? ends[p->result->end] : NULL);
  if (!p->encoded) return;
  json_long(j, "encode_s", p->encode_s);
  json_real(j, "unseen_encoded", p->held_out_encoded);
  stability_json(p->stable, j);
  page_metrics_tell(&p->encoded->metrics, 1, j);
  page_hash_tell(j, "fingerprint", p->encoded->fingerprint);
}

static void page_tell(const void *self, struct json *j)
{
  const struct fit_page *p = self;
  device_tell(p, j);
  task_tell(p, j);
  lines_tell(p, j);
  end_tell(p, j);
}

void fit_page_write(const struct fit_page *p)
{
  run_page_write(p->run, "sagitta fit", page_tell, p);
}

int fit_page_print(const struct fit_page *p)
{
  return run_page_print_own(p->run, page_tell, p);
}
