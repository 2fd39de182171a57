/* SPDX-License-Identifier: BSD-3-Clause
 * Routing on the CPU: blocks of packed rows stay in the cache while the panels pass by.
 *
 * Work is cut in items, a block of rows by a range of panels each; threads take the next item that
 * is free.  With few rows the panels are cut too, and the lists of the ranges merged. */
#include <string.h>

#include "base/status.h"
#include "device/cpu.h"

/* Packed rows of a block, at most: half of a second-level cache, beside two panels. */
enum { BLOCK_BYTES = 512 * 1024, BLOCK_GROUPS = 32 };

struct plan {
  const struct cpu_state *device;
  struct route_job *job;
  struct list_order order;
  idx panels, block_groups, blocks; /* of all panels, of a block, of all rows */
  idx parts;                        /* ranges of panels */
  struct entry *lists;              /* [parts][n][take] */
  idx next;                         /* item, shared by the threads */
};

/* What one thread works with. */
struct route_work {
  float *groups;         /* [block_groups][p][rows] */
  struct row_list *list; /* [block_groups rows] */
  float *values;         /* [block_groups rows][capacity] */
  idx *atoms;            /* the same */
  float *score, *gate;   /* [rows][lanes] */
  struct bad_score bad;
};

static void plan_make(struct plan *plan, struct device *dev, struct route_job *job)
{
  const struct cpu_state *s = dev->state;
  const struct route_loops *loops = s->route;
  idx threads = s->options.threads;
  idx groups = (job->n + loops->rows - 1) / loops->rows;
  gidx group_bytes = (gidx)s->options.p * loops->rows * (gidx)sizeof(float);
  idx most = (idx)(BLOCK_BYTES / group_bytes);
  most = most < 1 ? 1 : most > BLOCK_GROUPS ? BLOCK_GROUPS : most;
  gidx rounds = (groups + (gidx)threads * most - 1) / ((gidx)threads * most);
  idx share = (idx)((groups + threads * rounds - 1) / (threads * rounds));
  idx capacity = (2 * job->take + 96 + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
  plan->device = s;
  plan->job = job;
  plan->order = (struct list_order){job->take, capacity, job->excluded.count, s->ascending};
  plan->panels = (s->count + loops->lanes - 1) / loops->lanes;
  plan->block_groups = share;
  plan->blocks = (groups + share - 1) / share;
  plan->parts = threads / plan->blocks;
  if (plan->parts > plan->panels) plan->parts = plan->panels;
  if (plan->parts < 1) plan->parts = 1;
}

static int work_take(struct arena *arena, const struct plan *plan, struct route_work *w)
{
  const struct route_loops *loops = plan->device->route;
  gidx rows = (gidx)plan->block_groups * loops->rows, tile = (gidx)loops->rows * loops->lanes;
  TRY(arena_take(arena, &w->groups, rows * plan->device->options.p, sizeof(float)));
  TRY(arena_take(arena, &w->list, rows, sizeof *w->list));
  TRY(arena_take(arena, &w->values, rows * plan->order.capacity, sizeof(float)));
  TRY(arena_take(arena, &w->atoms, rows * plan->order.capacity, sizeof(idx)));
  TRY(arena_take(arena, &w->score, tile, sizeof(float)));
  TRY(arena_take(arena, &w->gate, tile, sizeof(float)));
  w->bad = (struct bad_score){-1, -1};
  return OK;
}

/* groups[..][p][rows] <- rows first .. first + n - 1, padded with zeros. */
static void rows_pack(const struct plan *plan, idx first, idx n, float *groups)
{
  idx p = plan->device->options.p, height = plan->device->route->rows;
  for (idx i = 0; i < n; i += height)
    for (idx r = 0; r < height; r++) {
      const float *row = (const float *)plan->job->rows->device + (gidx)(first + i + r) * p;
      float *to = groups + (gidx)i * p + r;
      for (idx c = 0; c < p; c++) to[(gidx)c * height] = i + r < n ? row[c] : 0;
    }
}

static void lists_start(const struct plan *plan, struct route_work *w, idx first, idx n)
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

/* Values of one group and one panel: scores, or gates of frames. */
static const float *values_compute(const struct plan *plan, struct route_work *w,
                                   const float *panel, const float *group)
{
  const struct route_loops *loops = plan->device->route;
  idx d = plan->device->options.d, p = plan->device->options.p;
  for (idx m = 0; m < d; m++) {
    loops->scores(panel + (gidx)m * p * loops->lanes, group, p, w->score);
    if (d > 1) loops->square(w->score, m == 0, w->gate);
  }
  return d > 1 ? w->gate : w->score;
}

/* Bring part number `part` of `parts` of the next panel into the second-level cache. */
static void panel_prefetch(const float *panel, gidx floats, idx part, idx parts)
{
  const char *at = (const char *)(panel + floats * part / parts);
  const char *end = (const char *)(panel + floats * (part + 1) / parts);
  for (; at < end; at += CACHE_LINE) __builtin_prefetch(at, 0, 2);
}

static void panel_route(const struct plan *plan, struct route_work *w, idx number, idx n)
{
  const struct cpu_state *s = plan->device;
  const struct route_loops *loops = s->route;
  gidx floats = panel_floats(s);
  const float *panel = s->panels + number * floats;
  idx height = loops->rows, groups = (n + height - 1) / height;
  idx slot = number * loops->lanes;
  idx valid = s->count - slot < loops->lanes ? s->count - slot : loops->lanes;
  for (idx g = 0; g < groups; g++) {
    idx row = g * height, rows = n - row < height ? n - row : height;
    if (number + 1 < plan->panels) panel_prefetch(panel + floats, floats, g, groups);
    const float *values = values_compute(plan, w, panel, w->groups + (gidx)row * s->options.p);
    loops->select(&plan->order, values, valid, s->atom_of + slot, w->list + row, rows);
  }
}

static void bad_note(struct bad_score *bad, struct bad_score found)
{
  if (found.atom < 0) return;
  if (bad->row < 0 || found.row < bad->row || (found.row == bad->row && found.atom < bad->atom))
    *bad = found;
}

static void item_route(const struct plan *plan, struct route_work *w, idx item)
{
  idx height = plan->device->route->rows, part = item / plan->blocks, n = plan->job->n;
  idx first = item % plan->blocks * plan->block_groups * height;
  idx rows = n - first < plan->block_groups * height ? n - first : plan->block_groups * height;
  idx begin = (idx)((gidx)plan->panels * part / plan->parts);
  idx end = (idx)((gidx)plan->panels * (part + 1) / plan->parts);
  rows_pack(plan, first, rows, w->groups);
  lists_start(plan, w, first, rows);
  for (idx number = begin; number < end; number++) panel_route(plan, w, number, rows);
  for (idx i = 0; i < rows; i++) {
    gidx to = (gidx)part * n + first + i;
    bad_note(&w->bad, (struct bad_score){first + i, w->list[i].bad});
    plan->device->route->finish(&plan->order, w->list + i, plan->lists + to * plan->order.take);
  }
}

static void items_run(struct plan *plan, struct route_work *w)
{
  for (;;) {
    idx item;
#pragma omp atomic capture
    item = plan->next++;
    if (item >= plan->blocks * plan->parts) return;
    item_route(plan, w, item);
  }
}

static int route_run(struct plan *plan, struct arena *arena)
{
  struct route_job *job = plan->job;
  struct route_work *works;
  int threads = plan->device->options.threads;
  gidx stride = (gidx)job->n * job->take;
  plan->lists = job->lists->device;
  if (plan->parts > 1)
    TRY(arena_take(arena, &plan->lists, plan->parts * stride, sizeof *plan->lists));
  TRY(arena_take(arena, &works, threads, sizeof *works));
  for (int t = 0; t < threads; t++) TRY(work_take(arena, plan, works + t));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) items_run(plan, works + t);
  for (int t = 0; t < threads; t++) bad_note(&job->bad, works[t].bad);
  if (plan->parts == 1) return OK;
#pragma omp parallel for num_threads(threads)
  for (idx i = 0; i < job->n; i++) {
    gidx at = (gidx)i * job->take;
    lists_merge(plan->lists + at, plan->parts, stride, job->take,
                (struct entry *)job->lists->device + at);
  }
  return OK;
}

int cpu_route_exact(struct device *dev, struct route_job *job)
{
  struct plan plan = {0};
  struct arena arena = {0};
  plan_make(&plan, dev, job);
  int status = route_run(&plan, &arena);
  arena_free(&arena);
  return status;
}

int cpu_route(struct device *dev, struct route_job *job)
{
  const struct cpu_state *s = dev->state;
  return s->filter.is_on ? filter_route(dev, job) : cpu_route_exact(dev, job);
}
