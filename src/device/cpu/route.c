/* SPDX-License-Identifier: BSD-3-Clause
 * Routing on the CPU: a block of packed rows stays in the cache while the panels of the dictionary
 * pass by.
 *
 * A task is a block of rows and a range of panels; a thread that is free takes the next task.  With
 * few rows there are several ranges of panels, whose lists are merged at the end. */
#include <string.h>

#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/screen.h"

/* The packed rows of a block take at most half of a second-level cache, which also holds two
 * panels. */
enum { BLOCK_BYTES = 512 * 1024, BLOCK_GROUPS = 32 };

struct route_plan {
  const struct cpu_state *device;
  struct route_job *job;
  struct list_order order;
  idx panels;          /* of the dictionary */
  idx block_groups;    /* groups of rows in a block */
  idx blocks;          /* of rows */
  idx parts;           /* ranges of panels */
  struct entry *lists; /* [parts][n][top_k] */
  idx next;            /* the first task that no thread has taken yet */
};

/* Work arrays of one thread. */
struct route_work {
  float *groups;         /* [block_groups][p][rows] */
  struct row_list *list; /* [block_groups rows] */
  float *values;         /* [block_groups rows][capacity] */
  idx *atoms;            /* the same */
  float *score, *gate;   /* [rows][lanes] */
  struct bad_score bad;
};

/* Choose the blocks of rows and the ranges of panels, so that every thread has work. */
static void route_plan_make(struct route_plan *plan, struct device *dev, struct route_job *job)
{
  const struct cpu_state *s = cpu_of(dev);
  const struct route_loops *loops = s->route;
  idx threads = s->options.threads;
  idx groups = (job->n + loops->rows - 1) / loops->rows;
  gidx group_bytes = (gidx)s->options.p * loops->rows * (gidx)sizeof(float);
  idx max = (idx)(BLOCK_BYTES / group_bytes);
  max = max < 1 ? 1 : max > BLOCK_GROUPS ? BLOCK_GROUPS : max;
  gidx rounds = (groups + (gidx)threads * max - 1) / ((gidx)threads * max);
  idx share = (idx)((groups + threads * rounds - 1) / (threads * rounds));
  idx capacity = (2 * job->top_k + 96 + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
  plan->device = s;
  plan->job = job;
  plan->order = (struct list_order){job->top_k, capacity, job->excluded.count, s->ascending};
  plan->panels = (s->count + loops->lanes - 1) / loops->lanes;
  plan->block_groups = share;
  plan->blocks = (groups + share - 1) / share;
  plan->parts = threads / plan->blocks;
  if (plan->parts > plan->panels) plan->parts = plan->panels;
  if (plan->parts < 1) plan->parts = 1;
}

static int work_alloc(struct arena *arena, const struct route_plan *plan, struct route_work *w)
{
  const struct route_loops *loops = plan->device->route;
  gidx rows = (gidx)plan->block_groups * loops->rows, tile = (gidx)loops->rows * loops->lanes;
  TRY(arena_alloc(arena, &w->groups, rows * plan->device->options.p, sizeof(float)));
  TRY(arena_alloc(arena, &w->list, rows, sizeof *w->list));
  TRY(arena_alloc(arena, &w->values, rows * plan->order.capacity, sizeof(float)));
  TRY(arena_alloc(arena, &w->atoms, rows * plan->order.capacity, sizeof(idx)));
  TRY(arena_alloc(arena, &w->score, tile, sizeof(float)));
  TRY(arena_alloc(arena, &w->gate, tile, sizeof(float)));
  w->bad = (struct bad_score){-1, -1};
  return OK;
}

/* groups[..][p][rows] <- rows first .. first + n - 1, padded with zeros. */
static void rows_pack(const struct route_plan *plan, idx first, idx n, float *groups)
{
  idx p = plan->device->options.p, height = plan->device->route->rows;
  for (idx i = 0; i < n; i += height)
    for (idx r = 0; r < height; r++) {
      const float *row = (const float *)plan->job->rows->device + (gidx)(first + i + r) * p;
      float *to = groups + (gidx)i * p + r;
      for (idx c = 0; c < p; c++) to[(gidx)c * height] = i + r < n ? row[c] : 0;
    }
}

/* Start empty lists for rows first .. first + n - 1 of the job. */
static void lists_start(const struct route_plan *plan, struct route_work *w, idx first, idx n)
{
  const struct exclusions *excluded = &plan->job->excluded;
  idx capacity = plan->order.capacity;
  for (idx i = 0; i < n; i++) {
    struct row_list *list = w->list + i;
    *list = (struct row_list){
        .value = w->values + (gidx)i * capacity, .atom = w->atoms + (gidx)i * capacity, .bad = -1};
    if (excluded->count) list->excluded = excluded->atoms + (gidx)(first + i) * excluded->stride;
    memset(list->value, 0, (size_t)capacity * sizeof(float));
    for (idx j = 0; j < capacity; j++) list->atom[j] = INT32_MAX;
  }
}

/* Score n rows against one panel (for frames compute their gates), and append the candidates to the
 * lists of the rows. */
static void panel_route(const struct route_plan *plan, struct route_work *w, idx number, idx n)
{
  const struct cpu_state *s = plan->device;
  const struct route_loops *loops = s->route;
  gidx floats = panel_floats(s);
  const float *panel = s->panels + number * floats;
  idx d = s->options.d, p = s->options.p;
  idx height = loops->rows, groups = (n + height - 1) / height;
  idx slot = number * loops->lanes;
  idx valid = s->count - slot < loops->lanes ? s->count - slot : loops->lanes;
  for (idx g = 0; g < groups; g++) {
    idx row = g * height, rows = n - row < height ? n - row : height;
    if (number + 1 < plan->panels)
      cache_prefetch(panel + floats, floats * (gidx)sizeof *panel, g, groups);
    const float *group = w->groups + (gidx)row * p;
    for (idx m = 0; m < d; m++) {
      loops->scores(panel + (gidx)m * p * loops->lanes, group, p, w->score);
      if (d > 1) loops->square(w->score, m == 0, w->gate);
    }
    if (s->options.nonnegative) loops->positive(w->score);
    loops->select(&plan->order, d > 1 ? w->gate : w->score, valid, s->atom_of + slot, w->list + row,
                  rows);
  }
}

/* Keep one of two scores that are not finite: the score of the lower row, or in the same row the
 * score of the lower atom. */
static void bad_merge(struct bad_score *bad, struct bad_score found)
{
  if (found.atom < 0) return;
  if (bad->row < 0 || found.row < bad->row || (found.row == bad->row && found.atom < bad->atom))
    *bad = found;
}

/* Take the next task. */
static idx task_take(struct route_plan *plan)
{
  idx task;
#pragma omp atomic capture
  task = plan->next++;
  return task;
}

/* Every thread routes tasks until none is left. */
static void tasks_route(struct route_plan *plan, struct route_work *w)
{
  const struct route_loops *loops = plan->device->route;
  idx n = plan->job->n, block = plan->block_groups * loops->rows, top_k = plan->order.top_k;
  for (idx task; (task = task_take(plan)) < plan->blocks * plan->parts;) {
    idx part = task / plan->blocks, first = task % plan->blocks * block;
    idx rows = n - first < block ? n - first : block;
    idx begin = (idx)((gidx)plan->panels * part / plan->parts);
    idx end = (idx)((gidx)plan->panels * (part + 1) / plan->parts);
    rows_pack(plan, first, rows, w->groups);
    lists_start(plan, w, first, rows);
    for (idx number = begin; number < end; number++) panel_route(plan, w, number, rows);
    for (idx i = 0; i < rows; i++) {
      gidx to = (gidx)part * n + first + i;
      bad_merge(&w->bad, (struct bad_score){first + i, w->list[i].bad});
      loops->finish(&plan->order, w->list + i, plan->lists + to * top_k);
    }
  }
}

/* *works <- work arrays of all threads; plan->lists <- space for the lists of the ranges. */
static int works_alloc(struct arena *arena, struct route_plan *plan, struct route_work **works)
{
  const struct route_job *job = plan->job;
  int threads = plan->device->options.threads;
  gidx entries = (gidx)plan->parts * job->n * job->top_k;
  plan->lists = job->lists->device;
  if (plan->parts > 1) TRY(arena_alloc(arena, &plan->lists, entries, sizeof *plan->lists));
  TRY(arena_alloc(arena, works, threads, sizeof **works));
  for (int t = 0; t < threads; t++) TRY(work_alloc(arena, plan, *works + t));
  return OK;
}

/* The job's lists <- the lists of all ranges, merged row by row. */
static void ranges_merge(const struct route_plan *plan)
{
  const struct route_job *job = plan->job;
  gidx stride = (gidx)job->n * job->top_k;
#pragma omp parallel for num_threads(plan->device->options.threads)
  for (idx i = 0; i < job->n; i++) {
    gidx at = (gidx)i * job->top_k;
    lists_merge(plan->lists + at, plan->parts, stride, job->top_k,
                (struct entry *)job->lists->device + at);
  }
}

int cpu_route_exact(struct device *dev, struct route_job *job)
{
  struct route_plan plan = {0};
  struct arena arena = {0};
  struct route_work *works;
  int threads = cpu_of(dev)->options.threads;
  route_plan_make(&plan, dev, job);
  int status = works_alloc(&arena, &plan, &works);
  if (!status) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) tasks_route(&plan, works + t);
    for (int t = 0; t < threads; t++) bad_merge(&job->bad, works[t].bad);
    if (plan.parts > 1) ranges_merge(&plan);
  }
  arena_free(&arena);
  return status;
}

int cpu_scatter(struct device *dev, const struct scatter_job *job)
{
  const struct entry *lists = job->lists->device;
  const idx *power = job->power ? job->power->device : NULL;
  for (gidx i = 0; i < job->n; i++)
    for (idx j = 0; j < job->top_k; j++) {
      struct entry e = lists[i * job->top_k + j];
      gidx to = i * job->s + job->at + j;
      ((idx *)job->atoms->device)[to] = e.atom;
      ((float *)job->score->device)[to] = entry_score(e, dev->d, power ? power[i] : 0);
    }
  return OK;
}

/* *rows <- the job's rows, multiplied by their powers of two if any power is not 0 (frames
 * only). */
static int rows_scale(struct device *dev, const struct route_job *job, struct arena *arena,
                      struct buffer *rows)
{
  const struct cpu_state *s = cpu_of(dev);
  idx p = s->options.p, *power = job->power->device, any = 0;
  const float *from = job->rows->device;
  float *to;
  *rows = *job->rows;
#pragma omp parallel for num_threads(s->options.threads) reduction(| : any)
  for (idx i = 0; i < job->n; i++) any |= power[i] = route_power(from + (gidx)i * p, p);
  if (!any) return OK;
  TRY(arena_alloc(arena, &to, (gidx)job->n * p, sizeof *to));
#pragma omp parallel for num_threads(s->options.threads)
  for (idx i = 0; i < job->n; i++) route_scale(from + (gidx)i * p, power[i], p, to + (gidx)i * p);
  *rows = host_buffer(to);
  return OK;
}

static int rows_route(struct device *dev, struct route_job *job)
{
  return cpu_of(dev)->screen.is_on ? screen_route(dev, job) : cpu_route_exact(dev, job);
}

int cpu_route(struct device *dev, struct route_job *job)
{
  struct arena arena = {0};
  struct route_job part = *job;
  struct buffer rows;
  if (dev->d == 1 || !job->power) return rows_route(dev, job);
  part.rows = &rows;
  int status = rows_scale(dev, job, &arena, &rows);
  if (!status) status = rows_route(dev, &part);
  job->bad = part.bad;
  arena_free(&arena);
  return status;
}
