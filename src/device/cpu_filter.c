/* SPDX-License-Identifier: BSD-3-Clause
 * Routing by way of the certified filter (doc/certified.md): sizes from small integers, a list of
 * the atoms that their bound cannot exclude, exact chains for those alone.
 *
 * A row whose list overflows, or whose scores could, takes the exact path; the result is the same
 * either way.  Threads take the next block of rows that is free. */
#include <string.h>

#include "base/log.h"
#include "base/order.h"
#include "base/status.h"
#include "device/cpu_filter_inside.h"

/* Integers of a block's rows, and rows, at most; its lists follow. */
enum { BLOCK_BYTES = 384 * 1024, BLOCK_ROWS = 768 };
/* Candidates of a row, beside four times what is wanted. */
enum { CANDIDATES = 1024 };
/* The exact path is taken for good where it was needed for one row in so many. */
enum { LEFT_MOST = 4 };

static void plan_make(struct filter_plan *plan, const struct cpu_state *s, struct route_job *job)
{
  const struct filter_loops *loops = s->filter.loops;
  gidx group_bytes = (gidx)s->filter.quads * 4 * loops->rows;
  gidx groups = BLOCK_BYTES / group_bytes, all = (job->n + loops->rows - 1) / loops->rows;
  gidx most = BLOCK_ROWS / loops->rows;
  groups = groups < 1 ? 1 : groups > most ? most : groups;
  gidx rounds = (all + s->options.threads * groups - 1) / (s->options.threads * groups);
  groups = (all + s->options.threads * rounds - 1) / (s->options.threads * rounds);
  *plan = (struct filter_plan){.device = s, .job = job};
  plan->capacity = (4 * job->take + CANDIDATES + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
  plan->block_rows = (idx)groups * loops->rows;
  plan->blocks = (job->n + plan->block_rows - 1) / plan->block_rows;
  plan->panels = (s->count + loops->lanes - 1) / loops->lanes;
  /* The first panels are a sample of all, so the bar is soon high, in whatever order atoms are. */
  plan->stride = golden_stride(plan->panels);
}

static int work_take(struct arena *arena, const struct filter_plan *plan, struct filter_work *w)
{
  const struct filter_state *f = &plan->device->filter;
  gidx rows = plan->block_rows, entries = rows * plan->capacity;
  float *size;
  idx *slot;
  TRY(arena_take(arena, &w->q, f->quads + 1, 4));
  TRY(arena_take(arena, &w->groups, rows * f->quads, 4));
  TRY(arena_take(arena, &w->start, rows, sizeof *w->start));
  TRY(arena_take(arena, &w->slope, rows, sizeof *w->slope));
  TRY(arena_take(arena, &w->reach, rows, sizeof *w->reach));
  TRY(arena_take(arena, &w->rows, rows, sizeof *w->rows));
  TRY(arena_take(arena, &w->sizes, (gidx)f->loops->rows * f->loops->lanes, sizeof *w->sizes));
  TRY(arena_take(arena, &w->hits, f->loops->rows, sizeof *w->hits));
  TRY(arena_take(arena, &w->sorted, plan->capacity, sizeof *w->sorted));
  TRY(arena_take(arena, &w->buckets, rows * (BUCKETS + 1), sizeof *w->buckets));
  TRY(arena_take(arena, &w->lower, plan->capacity, sizeof *w->lower));
  TRY(arena_take(arena, &w->upper, plan->capacity, sizeof *w->upper));
  TRY(arena_take(arena, &size, entries, sizeof *size));
  TRY(arena_take(arena, &slot, entries, sizeof *slot));
  for (gidx i = 0; i < rows; i++) {
    w->rows[i].size = size + i * plan->capacity;
    w->rows[i].slot = slot + i * plan->capacity;
  }
  return OK;
}

static void block_filter(struct filter_plan *plan, struct filter_work *w, idx block)
{
  idx first = block * plan->block_rows, n = plan->job->n - first;
  if (n > plan->block_rows) n = plan->block_rows;
  double begun = log_seconds();
  filter_rows_start(plan, w, first, n);
  for (gidx turn = 0; turn < plan->panels; turn++)
    filter_panel(plan, w, (idx)(turn * plan->stride % plan->panels),
                 (idx)((turn + 1) * plan->stride % plan->panels), n);
  double filtered = log_seconds();
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == FILTER_CERTIFIED) filter_cut(plan, w, i);
    if (w->rows[i].path != FILTER_CERTIFIED) w->rows[i].count = 0;
  }
  filter_evaluate(plan, w, first, n);
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == FILTER_CERTIFIED) filter_finish(plan, w, first, i);
    w->counts.rows[w->rows[i].path]++;
    plan->left[first + i] = w->rows[i].path != FILTER_CERTIFIED;
  }
  w->counts.seconds[FILTER_PRODUCT] += filtered - begun;
  w->counts.seconds[FILTER_CHAIN] += log_seconds() - filtered;
}

static void blocks_run(struct filter_plan *plan, struct filter_work *w)
{
  const struct filter_loops *loops = plan->device->filter.loops;
  loops->enter();
  for (;;) {
    idx block;
#pragma omp atomic capture
    block = plan->next++;
    if (block >= plan->blocks) break;
    block_filter(plan, w, block);
  }
  loops->leave();
}

static void counts_add(struct filter_counts *to, const struct filter_counts *more)
{
  for (int i = 0; i < FILTER_PATHS; i++) to->rows[i] += more->rows[i];
  to->candidates += more->candidates;
  if (more->most > to->most) to->most = more->most;
  for (int i = 0; i < FILTER_STAGES; i++) to->seconds[i] += more->seconds[i];
}

/* The rows that are left, by the exact path; plan->left[] becomes their list. */
static int left_route(struct device *dev, const struct filter_plan *plan, struct arena *arena)
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
  TRY(arena_take(arena, &x, (gidx)n * p, sizeof *x));
  TRY(arena_take(arena, &barred, (gidx)n * excluded->count, sizeof *barred));
  TRY(arena_take(arena, &lists, (gidx)n * job->take, sizeof *lists));
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
  dev->filter.seconds[FILTER_LEFT] += log_seconds() - begun;
  if (part.bad.row >= 0) job->bad = (struct bad_score){which[part.bad.row], part.bad.atom};
  for (gidx i = 0; i < n; i++)
    memcpy((struct entry *)job->lists->device + (gidx)which[i] * job->take, lists + i * job->take,
           sizeof *lists * (size_t)job->take);
  return OK;
}

static int plan_run(struct device *dev, struct filter_plan *plan, struct arena *arena)
{
  struct filter_work *works;
  int threads = plan->device->options.threads;
  TRY(arena_take(arena, &plan->left, plan->job->n, sizeof *plan->left));
  TRY(arena_take(arena, &works, threads, sizeof *works));
  for (int t = 0; t < threads; t++) TRY(work_take(arena, plan, works + t));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) blocks_run(plan, works + t);
  for (int t = 0; t < threads; t++) counts_add(&dev->filter, &works[t].counts);
  return left_route(dev, plan, arena);
}

int filter_route(struct device *dev, struct route_job *job)
{
  struct cpu_state *s = dev->state;
  struct filter_plan plan;
  struct arena arena = {0};
  gidx before = dev->filter.rows[FILTER_CERTIFIED];
  plan_make(&plan, s, job);
  int status = plan_run(dev, &plan, &arena);
  arena_free(&arena);
  gidx certified = dev->filter.rows[FILTER_CERTIFIED] - before, left = job->n - certified;
  if (s->filter.is_automatic && left * LEFT_MOST > job->n) {
    log_debug("the filter certifies %lld of %d rows: it is not used any more", (long long)certified,
              job->n);
    s->filter.is_on = 0;
  }
  return status;
}
