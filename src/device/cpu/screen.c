/* SPDX-License-Identifier: BSD-3-Clause
 * Routing with the certified filter (doc/certified.md).  Scores are estimated from 8-bit integers.
 * Atoms that the error bound cannot exclude are listed, and only for these are exact scores
 * computed.
 *
 * A row whose list overflows, or whose scores might overflow, takes the direct path; its result is
 * the same.  A thread that is free takes the next block of rows. */
#include "device/cpu/screen.h"

#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/cpu/screen_rescore.h"

/* The integers of a block's rows take at most BLOCK_BYTES, without its lists. */
enum { BLOCK_BYTES = 384 * 1024, BLOCK_ROWS = 768 };
/* A row's list has space for this many candidates, plus four times top_k. */
enum { CANDIDATES = 1024 };
/* An automatic filter is turned off for good if more than one row in MAX_LEFT of a job takes the
 * direct path. */
enum { MAX_LEFT = 4 };

static void screen_plan_make(struct screen_plan *plan, const struct cpu_state *s,
                             struct route_job *job)
{
  const struct screen_loops *loops = s->screen.loops;
  gidx group_bytes = (gidx)s->screen.quads * 4 * loops->rows;
  gidx groups = BLOCK_BYTES / group_bytes, all = (job->n + loops->rows - 1) / loops->rows;
  gidx max = BLOCK_ROWS / loops->rows;
  groups = groups < 1 ? 1 : groups > max ? max : groups;
  gidx rounds = (all + s->options.threads * groups - 1) / (s->options.threads * groups);
  groups = (all + s->options.threads * rounds - 1) / (s->options.threads * rounds);
  *plan = (struct screen_plan){.device = s, .job = job};
  plan->capacity = (4 * job->top_k + CANDIDATES + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
  plan->block_rows = (idx)groups * loops->rows;
  plan->blocks = (job->n + plan->block_rows - 1) / plan->block_rows;
  plan->panels = (s->count + loops->lanes - 1) / loops->lanes;
  /* Panels are visited with a stride.  So the first ones are a sample of all atoms, and thresholds
   * rise soon, whatever the order of the atoms. */
  plan->stride = golden_stride(plan->panels);
}

static int work_alloc(struct arena *arena, const struct screen_plan *plan, struct screen_work *w)
{
  const struct screen_state *f = &plan->device->screen;
  gidx rows = plan->block_rows, entries = rows * plan->capacity;
  float *size;
  idx *slot;
  TRY(arena_alloc(arena, &w->q, f->quads + 1, 4));
  TRY(arena_alloc(arena, &w->groups, rows * f->quads, 4));
  TRY(arena_alloc(arena, &w->start, rows, sizeof *w->start));
  TRY(arena_alloc(arena, &w->slope, rows, sizeof *w->slope));
  TRY(arena_alloc(arena, &w->reach, rows, sizeof *w->reach));
  TRY(arena_alloc(arena, &w->rows, rows, sizeof *w->rows));
  TRY(arena_alloc(arena, &w->sizes, (gidx)f->loops->rows * f->loops->lanes, sizeof *w->sizes));
  TRY(arena_alloc(arena, &w->hits, f->loops->rows, sizeof *w->hits));
  TRY(arena_alloc(arena, &w->sorted, plan->capacity, sizeof *w->sorted));
  TRY(arena_alloc(arena, &w->buckets, rows * (SCREEN_BUCKETS + 1), sizeof *w->buckets));
  TRY(arena_alloc(arena, &w->lower, plan->capacity, sizeof *w->lower));
  TRY(arena_alloc(arena, &w->upper, plan->capacity, sizeof *w->upper));
  TRY(arena_alloc(arena, &size, entries, sizeof *size));
  TRY(arena_alloc(arena, &slot, entries, sizeof *slot));
  for (gidx i = 0; i < rows; i++) {
    w->rows[i].size = size + i * plan->capacity;
    w->rows[i].slot = slot + i * plan->capacity;
  }
  return OK;
}

/* Screen one block of rows, and compute the exact scores of the candidates. */
static void block_screen(struct screen_plan *plan, struct screen_work *w, idx block)
{
  idx first = block * plan->block_rows, n = plan->job->n - first;
  if (n > plan->block_rows) n = plan->block_rows;
  double begun = log_seconds();
  screen_rows_start(plan, w, first, n);
  for (gidx turn = 0; turn < plan->panels; turn++)
    screen_panel(plan, w, (idx)(turn * plan->stride % plan->panels),
                 (idx)((turn + 1) * plan->stride % plan->panels), n);
  double screened = log_seconds();
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == SCREEN_CERTIFIED) screen_prune(plan, w, i);
    if (w->rows[i].path != SCREEN_CERTIFIED) w->rows[i].count = 0;
  }
  screen_rescore(plan, w, first, n);
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == SCREEN_CERTIFIED) screen_select(plan, w, first, i);
    w->counts.rows[w->rows[i].path]++;
    plan->left[first + i] = w->rows[i].path != SCREEN_CERTIFIED;
  }
  w->counts.seconds[SCREEN_PRODUCT] += screened - begun;
  w->counts.seconds[SCREEN_RESCORE] += log_seconds() - screened;
}

/* Every thread screens blocks until none is left. */
static void blocks_screen(struct screen_plan *plan, struct screen_work *w)
{
  const struct screen_loops *loops = plan->device->screen.loops;
  loops->enter();
  for (;;) {
    idx block;
#pragma omp atomic capture
    block = plan->next++;
    if (block >= plan->blocks) break;
    block_screen(plan, w, block);
  }
  loops->leave();
}

static void counts_add(struct screen_counts *to, const struct screen_counts *more)
{
  for (int i = 0; i < SCREEN_PATHS; i++) to->rows[i] += more->rows[i];
  to->candidates += more->candidates;
  if (more->max > to->max) to->max = more->max;
  for (int i = 0; i < SCREEN_STAGES; i++) to->seconds[i] += more->seconds[i];
}

/* Route the rows that the filter left on the direct path; plan->left[] becomes their list. */
static int left_route(struct device *dev, const struct screen_plan *plan, struct arena *arena)
{
  struct route_job *job = plan->job, part = *job;
  idx p = plan->device->options.p, *which = plan->left, n = 0;
  struct exclusions *excluded = &part.excluded;
  for (idx i = 0; i < job->n; i++) {
    int is_left = which[i];
    which[n] = i;
    n += is_left;
  }
  if (n == 0) return OK;
  float *x;
  idx *barred;
  struct entry *lists;
  TRY(arena_alloc(arena, &x, (gidx)n * p, sizeof *x));
  TRY(arena_alloc(arena, &barred, (gidx)n * excluded->count, sizeof *barred));
  TRY(arena_alloc(arena, &lists, (gidx)n * job->top_k, sizeof *lists));
  for (gidx i = 0; i < n; i++) {
    memcpy(x + i * p, (const float *)job->rows->device + (gidx)which[i] * p, sizeof *x * (size_t)p);
    for (idx j = 0; j < excluded->count; j++)
      barred[i * excluded->count + j] = excluded->atoms[(gidx)which[i] * excluded->stride + j];
  }
  struct buffer rows = host_buffer(x), out = host_buffer(lists);
  *excluded = (struct exclusions){barred, excluded->count, excluded->count};
  part.rows = &rows;
  part.lists = &out;
  part.n = n;
  double begun = log_seconds();
  TRY(cpu_route_exact(dev, &part));
  dev->filter.seconds[SCREEN_LEFT] += log_seconds() - begun;
  if (part.bad.row >= 0) job->bad = (struct bad_score){which[part.bad.row], part.bad.atom};
  for (gidx i = 0; i < n; i++)
    memcpy((struct entry *)job->lists->device + (gidx)which[i] * job->top_k, lists + i * job->top_k,
           sizeof *lists * (size_t)job->top_k);
  return OK;
}

static int plan_execute(struct device *dev, struct screen_plan *plan, struct arena *arena)
{
  struct screen_work *works;
  int threads = plan->device->options.threads;
  TRY(arena_alloc(arena, &plan->left, plan->job->n, sizeof *plan->left));
  TRY(arena_alloc(arena, &works, threads, sizeof *works));
  for (int t = 0; t < threads; t++) TRY(work_alloc(arena, plan, works + t));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) blocks_screen(plan, works + t);
  for (int t = 0; t < threads; t++) counts_add(&dev->filter, &works[t].counts);
  return left_route(dev, plan, arena);
}

int screen_route(struct device *dev, struct route_job *job)
{
  struct cpu_state *s = cpu_of(dev);
  struct screen_plan plan;
  struct arena arena = {0};
  gidx before = dev->filter.rows[SCREEN_CERTIFIED];
  screen_plan_make(&plan, s, job);
  int status = plan_execute(dev, &plan, &arena);
  arena_free(&arena);
  gidx certified = dev->filter.rows[SCREEN_CERTIFIED] - before, left = job->n - certified;
  if (s->screen.is_automatic && left * MAX_LEFT > job->n) {
    log_debug("the filter certifies only %lld of %d rows, so it is not used any more",
              (long long)certified, job->n);
    s->screen.is_on = 0;
  }
  return status;
}
