/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on the CPU: short ones one after another on each thread, with their whitened rows
 * kept in the cache from the sums to the steps; long ones by all threads together.  One that fails
 * is tried again with larger ridges, where that is wanted. */
#include <math.h>

#include "base/status.h"
#include "device/cpu_arrow_inside.h"

enum {
  CACHE_REALS = 1 << 16, /* of whitened rows that are kept: half of a usual second-level cache */
  LONG_ROWS = 8192,      /* a system of so many rows is shared by the threads */
};

/* Try, with larger ridges if it fails and that is wanted (N.15). */
static void item_solve(struct attempt *a, const struct arrow_options *o)
{
  struct arrow_outcome *out = &a->item->outcome;
  real addition = a->item->start.addition;
  idx retries = a->item->start.retries;
  for (;; retries++) {
    a->ridge_t = addition > 0 ? o->ridge_t + addition : o->ridge_t;
    a->ridge_b = addition > 0 ? o->ridge_b + addition : o->ridge_b;
    attempt_run(a);
    int is_hopeless = out->status == ARROW_OK || out->status == ARROW_NOT_FINITE;
    real next = addition > 0 ? 10 * addition : out->suggested_bump;
    if (is_hopeless || !o->escalate || retries >= ARROW_RETRIES_MOST || !isfinite(next)) break;
    addition = next;
  }
  out->ridge_t = a->ridge_t;
  out->ridge_b = a->ridge_b;
  out->addition = addition;
  out->retries = retries;
  out->pair = out->status ? log_pair_failed() : a->pair;
  out->log_det = log_pair_value(out->pair);
  attempt_steps(a);
}

static int is_long(const struct arrow_item *item, int threads)
{
  return threads > 1 && item->system.n >= LONG_ROWS;
}

/* Short systems, whichever is next. */
static void short_solve(const struct cpu_state *s, struct arrow_job *job, struct arrow_worker *w,
                        gidx *next)
{
  for (;;) {
    gidx i;
#pragma omp atomic capture
    i = (*next)++;
    if (i >= job->count) return;
    struct arrow_item *item = job->items + i;
    const struct arrow_system *system = &item->system;
    if (is_long(item, s->options.threads)) continue;
    int is_cached = system->n * arrow_group(system->d, system->k) <=
                    CACHE_REALS - LANE_COUNT * arrow_group(system->d, system->k);
    struct attempt a = {
        .loops = s->arrow, .workers = w, .threads = 1, .is_cached = is_cached, .item = item};
    item_solve(&a, &job->options);
  }
}

/* Reals that the largest systems of a job want, from the arrays of one thread. */
struct arrow_need {
  gidx panel, tail, sums, border, schur;
};

static int need_find(const struct arrow_job *job, struct arrow_need *need)
{
  *need = (struct arrow_need){.panel = CACHE_REALS};
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_system *s = &job->items[i].system;
    CHECK(s->d >= 1 && s->d <= ARROW_ROW_MOST && s->k >= 0 && s->k <= ARROW_BORDER_MOST &&
              s->n >= 0,
          ERR_INPUT, "a system has %lld rows of %d, a border of %d: at most %d and %d are possible",
          (long long)s->n, s->d, s->k, ARROW_ROW_MOST, ARROW_BORDER_MOST);
    gidx panel = arrow_panel(s->d, s->k, ARROW_CHUNK), tail = arrow_tail(s->d, s->k);
    if (panel > need->panel) need->panel = panel;
    if (tail > need->tail) need->tail = tail;
    if (arrow_sums(s->k) > need->sums) need->sums = arrow_sums(s->k);
    if (stride_of(s->k) > need->border) need->border = stride_of(s->k);
  }
  need->schur = need->border * need->border;
  return OK;
}

static int worker_take(struct arena *arena, const struct arrow_need *need, struct arrow_worker *w)
{
  TRY(arena_take(arena, &w->panel, need->panel, sizeof(real)));
  TRY(arena_take(arena, &w->tail, need->tail, sizeof(real)));
  TRY(arena_take(arena, &w->sums, need->sums * LANE_COUNT, sizeof(real)));
  TRY(arena_take(arena, &w->total, need->sums, sizeof(real)));
  TRY(arena_take(arena, &w->segment, need->sums, sizeof(real)));
  TRY(arena_take(arena, &w->schur, need->schur, sizeof(real)));
  TRY(arena_take(arena, &w->pivot, need->border, sizeof(real)));
  return arena_take(arena, &w->step_b, need->border, sizeof(real));
}

/* The device keeps the arrays from job to job while they are large enough. */
static int workers_ready(struct cpu_state *s, const struct arrow_job *job)
{
  struct arrow_room *room = &s->arrow_room;
  struct arrow_need need;
  TRY(need_find(job, &need));
  if (room->workers && need.panel <= room->panel && need.tail <= room->tail &&
      need.sums <= room->sums)
    return OK;
  arena_free(&room->arena);
  *room = (struct arrow_room){.panel = need.panel, .tail = need.tail, .sums = need.sums};
  struct arrow_worker *workers;
  TRY(arena_take(&room->arena, &workers, s->options.threads, sizeof *workers));
  for (int t = 0; t < s->options.threads; t++) TRY(worker_take(&room->arena, &need, workers + t));
  room->workers = workers;
  return OK;
}

int device_arrow(struct device *dev, struct arrow_job *job)
{
  struct cpu_state *s = dev->state;
  int threads = s->options.threads;
  gidx next = 0;
  if (!s->arrow) TRY(device_check_fma());
  CHECK(job->options.ridge_t >= 0 && job->options.ridge_b >= 0, ERR_INTERNAL, "ridges %g and %g",
        job->options.ridge_t, job->options.ridge_b);
  TRY(workers_ready(s, job));
  struct arrow_worker *workers = s->arrow_room.workers;
  for (gidx i = 0; i < job->count; i++) {
    if (!is_long(job->items + i, threads)) continue;
    struct attempt a = {
        .loops = s->arrow, .workers = workers, .threads = threads, .item = job->items + i};
    item_solve(&a, &job->options);
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) short_solve(s, job, workers + t, &next);
  return OK;
}
