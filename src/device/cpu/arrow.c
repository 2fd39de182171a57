/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on the CPU.  Each thread solves short systems one after another.  If the whitened
 * rows of a system fit in the cache, they are kept from the sums to the steps.  All threads
 * together solve a long system.  A system that fails is tried again with larger ridges, if the
 * options ask for it. */
#include <math.h>

#include "base/status.h"
#include "device/cpu/arrow_try.h"

enum {
  CACHE_REALS = 1 << 16, /* reals of kept rows: half of a usual second-level cache */
  LONG_ROWS = 8192,      /* all threads together solve a system of at least this many rows */
};

/* The next addition to the ridges of a system that failed. */
static struct ridges next_addition(const struct attempt *a, struct ridges addition)
{
  const struct arrow_outcome *out = &a->item->outcome;
  struct ridges unit;
  if (!ridges_are_zero(addition)) return ridges_next(addition);
  unit = ridges_units(&a->item->system);
  return out->status == ARROW_ROW_NOT_PD ? ridges_of_row(unit, out->suggested_bump)
                                         : ridges_of_border(unit, out->suggested_bump);
}

/* Solve one system.  While it fails, and the options ask for it, repeat with larger ridges
 * (N.15). */
static void item_solve(struct attempt *a, const struct arrow_options *o)
{
  struct arrow_outcome *out = &a->item->outcome;
  struct ridges addition = a->item->start.addition, base = {o->ridge_t, o->ridge_b};
  idx retries = a->item->start.retries;
  for (;; retries++) {
    struct ridges now = ridges_add(base, addition);
    a->ridge_t = now.t;
    a->ridge_b = now.b;
    attempt_solve(a);
    int is_final = out->status == ARROW_OK || out->status == ARROW_NOT_FINITE;
    if (is_final || !o->escalate || retries >= ARROW_MAX_RETRIES) break;
    struct ridges next = next_addition(a, addition);
    if (!ridges_are_finite(next)) break;
    addition = next;
  }
  out->ridge_t = a->ridge_t;
  out->ridge_b = a->ridge_b;
  out->addition = addition;
  out->retries = retries;
  out->pair = out->status ? det_pair_failed() : a->pair;
  out->log_det = det_pair_value(out->pair);
  attempt_steps(a);
}

static int is_long(const struct arrow_item *item, int threads)
{
  return threads > 1 && item->system.n >= LONG_ROWS;
}

/* Every thread solves short systems until none is left. */
static void short_systems_solve(const struct cpu_state *s, struct arrow_job *job,
                                struct arrow_worker *w, gidx *next)
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

/* Reals of the arrays of one thread, for the largest systems of a job. */
struct arrow_need {
  gidx panel, tail, sums, border, schur;
};

static int need_find(const struct arrow_job *job, struct arrow_need *need)
{
  *need = (struct arrow_need){.panel = CACHE_REALS};
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_system *s = &job->items[i].system;
    CHECK(s->d >= 1 && s->d <= ARROW_MAX_D && s->k >= 0 && s->k <= ARROW_MAX_BORDER && s->n >= 0,
          ERR_INPUT,
          "a system has %lld rows, row blocks of size %d and a border of %d: sizes are at most %d "
          "and %d",
          (long long)s->n, s->d, s->k, ARROW_MAX_D, ARROW_MAX_BORDER);
    gidx panel = arrow_panel(s->d, s->k, ARROW_CHUNK), tail = arrow_tail(s->d, s->k);
    if (panel > need->panel) need->panel = panel;
    if (tail > need->tail) need->tail = tail;
    if (arrow_sums(s->k) > need->sums) need->sums = arrow_sums(s->k);
    if (stride_of(s->k) > need->border) need->border = stride_of(s->k);
  }
  need->schur = need->border * need->border;
  return OK;
}

static int worker_alloc(struct arena *arena, const struct arrow_need *need, struct arrow_worker *w)
{
  TRY(arena_alloc(arena, &w->panel, need->panel, sizeof(real)));
  TRY(arena_alloc(arena, &w->tail, need->tail, sizeof(real)));
  TRY(arena_alloc(arena, &w->sums, need->sums * LANE_COUNT, sizeof(real)));
  TRY(arena_alloc(arena, &w->total, need->sums, sizeof(real)));
  TRY(arena_alloc(arena, &w->segment, need->sums, sizeof(real)));
  TRY(arena_alloc(arena, &w->schur, need->schur, sizeof(real)));
  TRY(arena_alloc(arena, &w->pivot, need->border, sizeof(real)));
  return arena_alloc(arena, &w->step_b, need->border, sizeof(real));
}

/* Work arrays of all threads.  The device keeps them between jobs while they are large enough. */
static int workers_ready(struct cpu_state *s, const struct arrow_job *job)
{
  struct arrow_scratch *scratch = &s->arrow_scratch;
  struct arrow_need need;
  TRY(need_find(job, &need));
  if (scratch->workers && need.panel <= scratch->panel && need.tail <= scratch->tail &&
      need.sums <= scratch->sums)
    return OK;
  arena_free(&scratch->arena);
  *scratch = (struct arrow_scratch){.panel = need.panel, .tail = need.tail, .sums = need.sums};
  struct arrow_worker *workers;
  TRY(arena_alloc(&scratch->arena, &workers, s->options.threads, sizeof *workers));
  for (int t = 0; t < s->options.threads; t++)
    TRY(worker_alloc(&scratch->arena, &need, workers + t));
  scratch->workers = workers;
  return OK;
}

int cpu_arrow(struct device *dev, struct arrow_job *job)
{
  struct cpu_state *s = cpu_of(dev);
  int threads = s->options.threads;
  gidx next = 0;
  if (!s->arrow) TRY(device_check_fma());
  TRY(workers_ready(s, job));
  struct arrow_worker *workers = s->arrow_scratch.workers;
  for (gidx i = 0; i < job->count; i++) {
    if (!is_long(job->items + i, threads)) continue;
    struct attempt a = {
        .loops = s->arrow, .workers = workers, .threads = threads, .item = job->items + i};
    item_solve(&a, &job->options);
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) short_systems_solve(s, job, workers + t, &next);
  return OK;
}
