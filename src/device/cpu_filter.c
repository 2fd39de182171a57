/* SPDX-License-Identifier: BSD-3-Clause
 * Routing by way of the certified filter (doc/certified.md): sizes from small integers, a list of
 * the atoms that their bound cannot exclude, exact chains for those alone.
 *
 * A row whose list overflows, or whose scores could, takes the exact path; the result is the same
 * either way.  Threads take the next block of rows that is free. */
#include "device/cpu_filter.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/cpu.h"

/* Integers of a block's rows, at most; its lists follow. */
enum { BLOCK_BYTES = 384 * 1024, BLOCK_GROUPS = 64 };
/* Atoms whose candidates are evaluated together, at most and in the cache. */
enum { BUCKETS = 32, BUCKET_BYTES = 6 * 1024 * 1024 };
/* Candidates of a row, beside four times what is wanted. */
enum { CANDIDATES = 1024 };
/* The exact path is taken for good where it was needed for one row in so many. */
enum { FLAGGED_MOST = 4 };
/* More than f32 arithmetic does to thresholds, sizes and bounds, doc/certified.md section 5. */
static const real SLACK = 0x1p-18, LEAST = 0x1p-146;

/* A row and its candidates. */
struct filter_row {
  real scale;       /* of its integers */
  real flat, steep; /* its sizes err by at most flat + steep (scale of the frame) */
  float *size;      /* [capacity] in integers; at last exact values */
  idx *slot;        /* [capacity] at last atoms */
  idx count, limit; /* cut when count reaches limit */
  float tau;        /* the exact support has no size below this */
  const idx *excluded;
  enum filter_path path;
};

struct filter_plan {
  const struct cpu_state *device;
  struct route_job *job;
  idx capacity, block_rows, blocks, panels;
  idx stride; /* between panels that follow each other, coprime to their number */
  idx next;   /* block, shared by the threads */
  idx *left;  /* [n] 1: takes the exact path */
};

/* What one thread works with; height: rows of a group. */
struct filter_work {
  int8_t *q;            /* [p, padded to eights] */
  int8_t *groups;       /* [block_rows][4 quads] */
  int32_t *start;       /* [block_rows] */
  float *slope, *reach; /* [block_rows] */
  struct filter_row *rows;
  float *sizes;         /* [height][lanes] */
  uint32_t *hits;       /* [height] */
  idx *sorted;          /* [capacity] */
  float *lower, *upper; /* [capacity] of the row that is being cut */
  idx *buckets; /* [block_rows][BUCKETS + 1] where each bucket of a row's candidates begins */
  struct filter_counts counts;
};

int filter_take(struct filter_state *f, struct arena *arena, idx d, idx p, idx atoms_most)
{
  f->quads = (p + 3) / 4;
  gidx slots = ((gidx)atoms_most + f->loops->lanes - 1) / f->loops->lanes * f->loops->lanes;
  TRY(arena_take(arena, &f->panels, slots * d * f->quads, 4));
  TRY(arena_take(arena, &f->scale, slots, sizeof *f->scale));
  TRY(arena_take(arena, &f->inverse, slots, sizeof *f->inverse));
  return arena_take(arena, &f->frame, slots, sizeof *f->frame);
}

/* One slot's integers, at its lane of its panel. */
static void slot_pack(struct filter_state *f, idx d, idx p, idx slot, const int8_t *q)
{
  idx lanes = f->loops->lanes;
  uint8_t *to = f->panels + (gidx)(slot / lanes) * d * f->quads * lanes * 4 + slot % lanes * 4;
  for (idx m = 0; m < d; m++, q += p)
    for (idx c = 0; c < p; c++)
      to[((gidx)m * f->quads + c / 4) * lanes * 4 + c % 4] = (uint8_t)(q[c] + f->loops->offset);
}

int filter_put(struct cpu_state *s, idx first, idx count, const float *frames)
{
  struct filter_state *f = &s->filter;
  idx d = s->options.d, p = s->options.p;
  struct arena arena = {0};
  int8_t *q;
  int threads = s->options.threads;
  real norm = f->norm_most, error = f->error_most;
  TRY(arena_take(&arena, &q, (gidx)threads * d * p, 1));
#pragma omp parallel for num_threads(threads) reduction(max : norm, error)
  for (int t = 0; t < threads; t++)
    for (idx i = t; i < count; i += threads) {
      const float *frame = frames + (gidx)i * d * p;
      int8_t *own = q + (gidx)t * d * p;
      struct quantized z;
      filter_quantize(frame, d, p, f->loops->levels, own, &z);
      slot_pack(f, d, p, first + i, own);
      f->frame[first + i] = frame;
      f->scale[first + i] = z.scale;
      f->inverse[first + i] = 1 / z.scale;
      real size = isfinite(z.norm) ? z.norm : INFINITY;
      norm = size > norm ? size : norm;
      error = z.error / z.scale > error ? z.error / z.scale : error;
    }
  f->norm_most = norm;
  f->error_most = error * (1 + 0x1p-40); /* of the division */
  arena_free(&arena);
  return OK;
}

/* Panels are taken a golden section of the dictionary apart, so that the first ones are a sample of
 * all and the bar is soon high, in whatever order the atoms are. */
static idx stride_find(idx panels)
{
  idx stride = (idx)(0.6180339887 * panels) + 1;
  for (;; stride++) {
    idx a = panels, b = stride;
    while (b) {
      idx rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return stride;
  }
}

static void plan_make(struct filter_plan *plan, const struct cpu_state *s, struct route_job *job)
{
  const struct filter_loops *loops = s->filter.loops;
  gidx group_bytes = (gidx)s->filter.quads * 4 * loops->rows;
  gidx groups = BLOCK_BYTES / group_bytes, all = (job->n + loops->rows - 1) / loops->rows;
  groups = groups < 1 ? 1 : groups > BLOCK_GROUPS ? BLOCK_GROUPS : groups;
  gidx rounds = (all + s->options.threads * groups - 1) / (s->options.threads * groups);
  groups = (all + s->options.threads * rounds - 1) / (s->options.threads * rounds);
  *plan = (struct filter_plan){.device = s, .job = job};
  plan->capacity = (4 * job->take + CANDIDATES + LIST_STEP - 1) / LIST_STEP * LIST_STEP;
  plan->block_rows = (idx)groups * loops->rows;
  plan->blocks = (job->n + plan->block_rows - 1) / plan->block_rows;
  plan->panels = (s->count + loops->lanes - 1) / loops->lanes;
  plan->stride = stride_find(plan->panels);
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

/* (C.6) A size is wanted if it is >= slope (1 / scale of the frame) - reach, in integers. */
static void threshold_set(struct filter_work *w, idx i)
{
  const struct filter_row *row = w->rows + i;
  real above = row->tau - row->flat;
  w->slope[i] = above > 0 ? (float)(above / row->scale * (1 - SLACK)) : 0;
  w->reach[i] = (float)(row->steep / row->scale * (1 + SLACK));
}

static void row_drop(struct filter_work *w, idx i)
{
  w->slope[i] = 0;
  w->reach[i] = -FLT_MAX; /* no size is wanted any more */
}

static void row_start(const struct filter_plan *plan, struct filter_work *w, idx first, idx i)
{
  const struct cpu_state *s = plan->device;
  const struct filter_state *f = &s->filter;
  struct filter_row *row = w->rows + i;
  const struct exclusions *excluded = &plan->job->excluded;
  const float *x = (const float *)plan->job->rows->device + (gidx)(first + i) * s->options.p;
  struct quantized z;
  w->start[i] = -f->loops->offset * f->loops->quantize(x, s->options.p, w->q, &z);
  struct filter_bound bound = filter_bound(&z, s->options.d, s->options.p);
  real keep = 1 - s->options.filter_less;
  row->scale = z.scale;
  row->flat = keep * (bound.alpha * f->norm_most + bound.rest) * (1 + 0x1p-40);
  row->steep = keep * bound.beta * f->error_most * (1 + 0x1p-40);
  row->count = 0;
  row->limit =
      2 * plan->job->take + 96 < plan->capacity ? 2 * plan->job->take + 96 : plan->capacity;
  row->tau = 0;
  row->excluded = excluded->atoms + (gidx)(first + i) * excluded->stride;
  row->path = FILTER_CERTIFIED;
  threshold_set(w, i);
  if (!(z.norm * f->norm_most < FILTER_HUGE(s->options.d))) {
    row->path = FILTER_SCORE;
    row_drop(w, i);
  }
}

/* groups[..][quads][rows][4] <- the integers of rows first .. first + n - 1, padded with zeros. */
static void rows_start(const struct filter_plan *plan, struct filter_work *w, idx first, idx n)
{
  const struct filter_loops *loops = plan->device->filter.loops;
  idx height = loops->rows, quads = plan->device->filter.quads;
  memset(w->groups, 0, (size_t)plan->block_rows * 4 * (size_t)quads);
  for (idx i = 0; i < n; i++) {
    int8_t *to = w->groups + ((gidx)(i / height) * quads * height + i % height) * 4;
    row_start(plan, w, first, i);
    for (idx c = 0; c < quads; c++) memcpy(to + (gidx)c * height * 4, w->q + 4 * c, 4);
  }
  for (idx i = n; i < plan->block_rows; i++) row_drop(w, i);
}

/* (C.6) Raise tau, and keep what it does not exclude. */
static void row_cut(const struct filter_plan *plan, struct filter_work *w, idx i)
{
  const struct filter_state *f = &plan->device->filter;
  struct filter_row *row = w->rows + i;
  idx take = plan->job->take, kept = 0;
  struct filter_scales by = {.scale = f->scale,
                             .down = (float)(row->scale * (1 - SLACK)),
                             .up = (float)(row->scale * (1 + SLACK)),
                             .flat = (float)(row->flat * (1 + SLACK) + LEAST),
                             .steep = (float)(row->steep * (1 + SLACK))};
  f->loops->bounds(&by, row->size, row->slot, row->count, w->lower, w->upper);
  if (row->count >= take) row->tau = f->loops->quantile(w->lower, row->count, take, row->tau);
  for (idx j = 0; j < row->count; j++) {
    row->size[kept] = row->size[j];
    row->slot[kept] = row->slot[j];
    kept += w->upper[j] >= row->tau;
  }
  row->count = kept;
  row->limit = kept + kept / 2 + take + 64;
  if (row->limit > plan->capacity) row->limit = plan->capacity;
  threshold_set(w, i);
  if (kept < plan->capacity) return;
  row->path = FILTER_LIST;
  row_drop(w, i);
}

static int is_excluded(const struct filter_plan *plan, const struct filter_row *row, idx atom)
{
  int found = 0;
  for (idx j = 0; j < plan->job->excluded.count; j++) found |= row->excluded[j] == atom;
  return found;
}

static void row_add(const struct filter_plan *plan, struct filter_work *w, idx i, idx slot,
                    float size)
{
  struct filter_row *row = w->rows + i;
  if (plan->job->excluded.count && is_excluded(plan, row, plan->device->atom_of[slot])) return;
  row->size[row->count] = size;
  row->slot[row->count] = slot;
  if (++row->count >= row->limit) row_cut(plan, w, i);
}

/* Bring part number `part` of `parts` of the next panel into the second-level cache. */
static void panel_prefetch(const uint8_t *panel, gidx bytes, idx part, idx parts)
{
  const uint8_t *at = panel + bytes * part / parts, *end = panel + bytes * (part + 1) / parts;
  for (; at < end; at += CACHE_LINE) __builtin_prefetch(at, 0, 2);
}

static void panel_filter(const struct filter_plan *plan, struct filter_work *w, idx number,
                         idx next, idx n)
{
  const struct cpu_state *s = plan->device;
  const struct filter_state *f = &s->filter;
  const struct filter_loops *loops = f->loops;
  gidx bytes = (gidx)f->quads * loops->lanes * 4;
  const uint8_t *panel = f->panels + number * bytes * s->options.d;
  idx height = loops->rows, slot = number * loops->lanes, d = s->options.d;
  idx valid = s->count - slot < loops->lanes ? s->count - slot : loops->lanes;
  uint32_t there = (uint32_t)((UINT64_C(1) << valid) - 1);
  for (idx row = 0; row < n; row += height) {
    const int8_t *group = w->groups + (gidx)row * f->quads * 4;
    panel_prefetch(f->panels + next * bytes * d, bytes * d, row / height,
                   (n + height - 1) / height);
    for (idx m = 0; m < d; m++)
      loops->sizes(panel + m * bytes, group, w->start + row, f->quads,
                   d == 1       ? FILTER_ONLY
                   : m == 0     ? FILTER_FIRST
                   : m == d - 1 ? FILTER_LAST
                                : FILTER_NEXT,
                   w->sizes);
    uint32_t any =
        loops->pass(w->sizes, f->inverse + slot, w->slope + row, w->reach + row, w->hits);
    for (; any; any &= any - 1) {
      idx r = __builtin_ctz(any);
      for (uint32_t hits = w->hits[r] & there; hits; hits &= hits - 1) {
        idx lane = __builtin_ctz(hits);
        if (w->rows[row + r].path == FILTER_CERTIFIED)
          row_add(plan, w, row + r, slot + lane, w->sizes[r * loops->lanes + lane]);
      }
    }
  }
}

/* value[begin .. end - 1] <- the exact values of these candidates of a row. */
static void row_evaluate(const struct filter_plan *plan, const struct filter_row *row,
                         const float *x, idx begin, idx end, float *value)
{
  const struct cpu_state *s = plan->device;
  idx d = s->options.d, p = s->options.p;
  for (idx j = begin; j < end; j += FILTER_CHAINS) {
    const float *vector[FILTER_CHAINS];
    float score[FILTER_CHAINS], gate[FILTER_CHAINS];
    idx count = end - j < FILTER_CHAINS ? end - j : FILTER_CHAINS;
    for (idx m = 0; m < d; m++) {
      for (idx l = 0; l < FILTER_CHAINS; l++)
        vector[l] = s->filter.frame[row->slot[j + (l < count ? l : 0)]] + (gidx)m * p;
      s->filter.loops->chains(x, vector, p, score);
      for (idx l = 0; l < FILTER_CHAINS; l++) {
        float square = score[l] * score[l];
        gate[l] = m == 0 ? square : gate[l] + square;
      }
    }
    memcpy(value + j, d == 1 ? score : gate, (size_t)count * sizeof *value);
  }
}

/* Sort a row's candidates by the bucket of their slots. */
static void row_sort(struct filter_work *w, idx i, idx bucket_slots)
{
  struct filter_row *row = w->rows + i;
  idx *start = w->buckets + i * (BUCKETS + 1), *sorted = w->sorted;
  memset(start, 0, (BUCKETS + 1) * sizeof *start);
  for (idx j = 0; j < row->count; j++) start[row->slot[j] / bucket_slots + 1]++;
  for (idx b = 0; b < BUCKETS; b++) start[b + 1] += start[b];
  idx at[BUCKETS];
  memcpy(at, start, sizeof at);
  for (idx j = 0; j < row->count; j++) sorted[at[row->slot[j] / bucket_slots]++] = row->slot[j];
  memcpy(row->slot, sorted, (size_t)row->count * sizeof *sorted);
}

/* The exact values of all candidates of a block, in their rows' size[]: bucket by bucket of atoms,
 * as many as the cache holds, as long as a row has enough candidates in each. */
static void candidates_evaluate(const struct filter_plan *plan, struct filter_work *w, idx first,
                                idx n)
{
  const struct cpu_state *s = plan->device;
  idx p = s->options.p;
  gidx bytes = (gidx)s->count * s->options.d * p * (gidx)sizeof(float), candidates = 0;
  for (idx i = 0; i < n; i++) candidates += w->rows[i].count;
  gidx buckets = bytes / BUCKET_BYTES, most = candidates / ((gidx)n * 2 * FILTER_CHAINS);
  if (buckets > most) buckets = most;
  buckets = buckets < 1 ? 1 : buckets > BUCKETS ? BUCKETS : buckets;
  idx bucket_slots = (idx)((s->count + buckets - 1) / buckets);
  for (idx i = 0; i < n; i++) row_sort(w, i, bucket_slots);
  for (idx b = 0; b < buckets; b++)
    for (idx i = 0; i < n; i++) {
      const idx *start = w->buckets + i * (BUCKETS + 1);
      const float *x = (const float *)plan->job->rows->device + (gidx)(first + i) * p;
      row_evaluate(plan, w->rows + i, x, start[b], start[b + 1], w->rows[i].size);
    }
}

/* lists[first + i] <- the best of a row's candidates, whose values are exact now. */
static void row_finish(const struct filter_plan *plan, struct filter_work *w, idx first, idx i)
{
  struct list_order order = {.take = plan->job->take, .capacity = plan->capacity};
  const struct filter_row *row = w->rows + i;
  struct row_list list = {.value = row->size, .atom = row->slot, .count = row->count};
  for (idx j = 0; j < row->count; j++) list.atom[j] = plan->device->atom_of[row->slot[j]];
  for (idx j = row->count; j % LIST_STEP; j++) {
    list.value[j] = 0;
    list.atom[j] = INT32_MAX;
  }
  plan->device->route->finish(
      &order, &list, (struct entry *)plan->job->lists->device + (gidx)(first + i) * order.take);
  w->counts.candidates += row->count;
  if (row->count > w->counts.most) w->counts.most = row->count;
}

static void block_filter(struct filter_plan *plan, struct filter_work *w, idx block)
{
  idx first = block * plan->block_rows, n = plan->job->n - first;
  if (n > plan->block_rows) n = plan->block_rows;
  double begun = log_seconds();
  rows_start(plan, w, first, n);
  for (gidx turn = 0; turn < plan->panels; turn++)
    panel_filter(plan, w, (idx)(turn * plan->stride % plan->panels),
                 (idx)((turn + 1) * plan->stride % plan->panels), n);
  double filtered = log_seconds();
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == FILTER_CERTIFIED) row_cut(plan, w, i);
    if (w->rows[i].path != FILTER_CERTIFIED) w->rows[i].count = 0;
  }
  candidates_evaluate(plan, w, first, n);
  for (idx i = 0; i < n; i++) {
    if (w->rows[i].path == FILTER_CERTIFIED) row_finish(plan, w, first, i);
    w->counts.rows[w->rows[i].path]++;
    plan->left[first + i] = w->rows[i].path != FILTER_CERTIFIED;
  }
  w->counts.filter_seconds += filtered - begun;
  w->counts.exact_seconds += log_seconds() - filtered;
}

static void blocks_run(struct filter_plan *plan, struct filter_work *w)
{
  for (;;) {
    idx block;
#pragma omp atomic capture
    block = plan->next++;
    if (block >= plan->blocks) return;
    block_filter(plan, w, block);
  }
}

static void counts_add(struct filter_counts *to, const struct filter_counts *more)
{
  for (int i = 0; i < FILTER_PATHS; i++) to->rows[i] += more->rows[i];
  to->candidates += more->candidates;
  if (more->most > to->most) to->most = more->most;
  to->filter_seconds += more->filter_seconds;
  to->exact_seconds += more->exact_seconds;
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
  dev->filter.left_seconds += log_seconds() - begun;
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
  if (s->filter.is_automatic && left * FLAGGED_MOST > job->n) {
    log_debug("the filter certifies %lld of %d rows: it is not used any more", (long long)certified,
              job->n);
    s->filter.is_on = 0;
  }
  return status;
}
