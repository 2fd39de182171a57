/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems on the CPU: short ones one after another on each thread, with their whitened rows
 * kept in the cache from the sums to the steps; of long ones the threads share segments and lanes,
 * then chunks of steps.  A system that fails is looked at again, entry by entry, for the reason. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "device/cpu.h"

#define val double
#define VAL_FMA(a, b, c) fma(a, b, c)
#define VAL_SQRT(a) sqrt(a)
#include "arrow_body.h"

enum {
  CACHE_REALS = 1 << 16, /* of whitened rows that are kept: half of a usual second-level cache */
  LONG_ROWS = 8192,      /* a system of so many rows is shared by the threads */
  PARTS = LANE_COUNT / ARROW_PART,
};

/* What a thread works with. */
struct arrow_worker {
  real *panel, *tail;    /* arrow_rows' */
  real *sums;            /* [arrow_sums(k)][32] of a segment */
  struct arrow_pairs at; /* of the same segment */
  real *total, *segment; /* [arrow_sums(k)] */
  real *schur;           /* [k][stride(k)] */
  real *pivot, *step_b;  /* [stride(k)] */
};

/* One try of one system, by one thread or by all. */
struct attempt {
  const struct arrow_loops *loops;
  struct arrow_worker *workers;
  int threads, is_cached;
  struct arrow_item *item;
  real ridge_t, ridge_b;
  gidx first_segment; /* of those being summed */
  struct log_pair pair;
};

static idx stride_of(idx k)
{
  return (k + ARROW_WIDEST - 1) / ARROW_WIDEST * ARROW_WIDEST;
}

static struct arrow_rows rows_view(const struct attempt *a, const struct arrow_worker *w,
                                   gidx first, gidx end)
{
  const struct arrow_system *s = &a->item->system;
  gidx kept = a->is_cached ? arrow_panel(s->d, s->k, first) : 0;
  return (struct arrow_rows){.system = s,
                             .ridge_t = a->ridge_t,
                             .first = first,
                             .count = (idx)(end - first < ARROW_CHUNK ? end - first : ARROW_CHUNK),
                             .lane_end = LANE_COUNT,
                             .panel = w->panel + kept,
                             .tail = w->tail};
}

/* Call task(a, worker, i) for i = 0 .. count - 1, in any order, on all threads of the attempt. */
typedef void task_function(struct attempt *a, struct arrow_worker *worker, gidx i);
static void tasks_run(struct attempt *a, task_function *task, gidx count)
{
  gidx next = 0;
  if (a->threads == 1) {
    for (; next < count; next++) task(a, a->workers, next);
    return;
  }
#pragma omp parallel for num_threads(a->threads) schedule(static, 1)
  for (int t = 0; t < a->threads; t++)
    for (;;) {
      gidx i;
#pragma omp atomic capture
      i = next++;
      if (i >= count) break;
      task(a, a->workers + t, i);
    }
}

static void pairs_start(struct arrow_pairs *pairs)
{
  pairs->bad = 0;
  for (int i = 0; i < LANE_COUNT; i++) {
    pairs->m[i] = log_pair_unit.m;
    pairs->e[i] = log_pair_unit.e;
  }
}

/* Sum some lanes of one segment (N.12), into the worker whose number is the segment's. */
static void lanes_task(struct attempt *a, struct arrow_worker *worker, gidx i)
{
  int parts = a->threads > 1 ? PARTS : 1;
  struct arrow_worker *to = a->workers + i / parts;
  idx width = LANE_COUNT / parts, lane = (idx)(i % parts) * width;
  gidx first = (a->first_segment + i / parts) * LANE_SEGMENT, end = first + LANE_SEGMENT;
  struct arrow_pairs pairs;
  pairs_start(&pairs);
  if (end > a->item->system.n) end = a->item->system.n;
  for (gidx row = first; row < end; row += ARROW_CHUNK) {
    struct arrow_rows rows = rows_view(a, worker, row, end);
    rows.lane_begin = lane;
    rows.lane_end = lane + width;
    a->loops->whiten(&rows, &pairs);
    if (a->item->system.k > 0) a->loops->accumulate(&rows, row == first, to->sums);
  }
  memcpy(to->at.m + lane, pairs.m + lane, (size_t)width * sizeof *pairs.m);
  memcpy(to->at.e + lane, pairs.e + lane, (size_t)width * sizeof *pairs.e);
  if (!pairs.bad) return;
#pragma omp atomic write
  to->at.bad = 1;
}

static struct log_pair pairs_fold(const struct arrow_pairs *pairs)
{
  struct log_pair lane[LANE_COUNT];
  for (int i = 0; i < LANE_COUNT; i++) lane[i] = (struct log_pair){pairs->m[i], pairs->e[i]};
  for (int half = LANE_COUNT / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) lane[i] = log_pair_times(lane[i], lane[i + half]);
  return lane[0];
}

/* workers[0].total <- with this segment too. */
static void segment_add(struct attempt *a, gidx segment, const struct arrow_worker *from)
{
  const struct arrow_system *s = &a->item->system;
  gidx left = s->n - segment * LANE_SEGMENT, count = s->k > 0 ? arrow_sums(s->k) : 0;
  idx used = left < LANE_COUNT ? (idx)left : LANE_COUNT;
  real *total = a->workers->total, *sum = segment == 0 ? total : a->workers->segment;
  a->loops->fold(from->sums, count, used, sum);
  for (gidx i = 0; segment > 0 && i < count; i++) total[i] += sum[i];
  a->pair = log_pair_times(a->pair, pairs_fold(&from->at));
}

/* (N.9): T, w and the pair of the rows; whether all pivots were good. */
static int rows_reduce(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  gidx segments = (s->n + LANE_SEGMENT - 1) / LANE_SEGMENT;
  int parts = a->threads > 1 ? PARTS : 1;
  a->pair = log_pair_unit;
  if (segments == 0) memset(a->workers->total, 0, (size_t)arrow_sums(s->k) * sizeof(real));
  for (gidx first = 0; first < segments; first += a->threads) {
    gidx count = segments - first < a->threads ? segments - first : a->threads;
    a->first_segment = first;
    for (gidx i = 0; i < count; i++) a->workers[i].at.bad = 0;
    tasks_run(a, lanes_task, count * parts);
    for (gidx i = 0; i < count; i++) {
      if (a->workers[i].at.bad) return 0;
      segment_add(a, first + i, a->workers + i);
    }
  }
  return 1;
}

/* Schur complement and right side of (N.9), as columns with a stride. */
static void border_make(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  struct arrow_worker *w = a->workers;
  idx k = s->k, stride = stride_of(k);
  for (idx j = 0; j < k; j++) {
    real *column = w->schur + (gidx)j * stride;
    const real *c = s->c + (gidx)j * k;
    for (idx i = j; i < k; i++)
      column[i] = (i == j ? c[i] + a->ridge_b : c[i]) - w->total[(gidx)i * (i + 1) / 2 + j];
    w->step_b[j] = w->total[(gidx)k * (k + 1) / 2 + j] - s->hb[j];
  }
}

/* Sums that an entry which is not finite would have spoilt: look at the entries themselves then. */
static int is_suspect(const struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  const struct arrow_worker *w = a->workers;
  int suspect = 0;
  for (idx j = 0; j < s->k; j++)
    suspect |= !isfinite(w->total[(gidx)j * (j + 1) / 2 + j]) || !isfinite(w->step_b[j]);
  for (gidx i = 0; s->k == 0 && i < s->n * s->d; i++) suspect |= !isfinite(s->g[i]);
  return suspect;
}

/* The first entry of `count` square blocks that is read and not finite, or -1; size 0: all are
 * read. */
static gidx entry_find(const real *a, gidx count, gidx n, int is_square)
{
  for (gidx i = 0; i < count; i++)
    if (!isfinite(a[i]) && !(is_square && i % n < i / n % n)) return i;
  return -1;
}

static gidx not_finite(const struct arrow_system *s)
{
  gidx n = s->n, d = s->d, k = s->k, base = 0;
  const struct {
    const real *values;
    gidx count, width;
    int is_square;
  } parts[] = {{s->h, n * d * d, d, 1},
               {s->b, n * d * k, 1, 0},
               {s->g, n * d, 1, 0},
               {s->c, k * k, k, 1},
               {s->hb, k, 1, 0}};
  for (int i = 0; i < LENGTH(parts); base += parts[i++].count) {
    gidx at = entry_find(parts[i].values, parts[i].count, parts[i].width, parts[i].is_square);
    if (at >= 0) return base + at;
  }
  return -1;
}

static int is_good(real pivot)
{
  return pivot > 0 && pivot <= DBL_MAX;
}

static void fail(struct arrow_outcome *out, int status, gidx at, real bump)
{
  out->status = status;
  out->failed_at = at;
  out->suggested_bump = isfinite(bump) ? bump : nan_canonical();
}

/* The lowest row whose block has a bad pivot; there is one. */
static void row_diagnose(const struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  real block[ARROW_ROW_MOST * ARROW_ROW_MOST], l[ARROW_ROW_MOST * (ARROW_ROW_MOST + 1) / 2];
  real pivot[ARROW_ROW_MOST];
  idx d = s->d;
  for (gidx row = 0; row < s->n; row++) {
    memcpy(block, s->h + row * d * d, (size_t)(d * d) * sizeof *block);
    for (idx j = 0; j < d; j++) {
      block[j * d + j] += a->ridge_t;
      for (idx i = j; i < d; i++) l[ARROW_AT(d, i, j)] = block[j * d + i];
    }
    arrow_row_factor(d, l, pivot);
    for (idx j = 0; j < d; j++)
      if (!is_good(pivot[j])) {
        fail(&a->item->outcome, ARROW_ROW_NOT_PD, row, arrow_bump_row(block, d));
        return;
      }
  }
}

/* (N.10); its pivots go into the pair. */
static int border_solve(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  struct arrow_worker *w = a->workers;
  idx k = s->k, stride = stride_of(k);
  struct log_pair border = log_pair_unit;
  idx bad = a->loops->border_factor(w->schur, k, stride, w->pivot);
  if (bad >= 0) {
    border_make(a); /* again, since the factor stands there */
    fail(&a->item->outcome, ARROW_SCHUR_NOT_PD, bad, arrow_bump_border(w->schur, stride, s->c, k));
    return 0;
  }
  for (idx j = 0; j < k; j++) border = log_pair_pivot(border, w->pivot[j]);
  a->pair = log_pair_times(a->pair, border);
  a->loops->border_solve(w->schur, k, stride, w->step_b);
  return 1;
}

/* Sums, border and outcome; steps follow when the status is OK. */
static void attempt_run(struct attempt *a)
{
  struct arrow_outcome *out = &a->item->outcome;
  out->status = ARROW_OK;
  out->failed_at = -1;
  out->suggested_bump = 0;
  int has_rows = rows_reduce(a);
  if (has_rows) border_make(a);
  int has_border = has_rows && !is_suspect(a) && border_solve(a);
  if (has_border) return;
  gidx at = not_finite(&a->item->system);
  if (at >= 0)
    fail(out, ARROW_NOT_FINITE, at, 0);
  else if (!has_rows)
    row_diagnose(a);
  else if (out->status == ARROW_OK) /* finite entries, sums that are not */
    border_solve(a);
}

/* (N.11), one chunk. */
static void steps_task(struct attempt *a, struct arrow_worker *worker, gidx i)
{
  const struct arrow_system *s = &a->item->system;
  struct arrow_rows rows = rows_view(a, worker, i * ARROW_CHUNK, s->n);
  struct arrow_pairs unused;
  pairs_start(&unused);
  if (!a->is_cached) a->loops->whiten(&rows, &unused);
  a->loops->steps(&rows, a->workers->step_b, a->item->step_t);
}

static void steps_write(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  const real *step = a->workers->step_b;
  if (a->item->outcome.status) {
    memset(a->item->step_t, 0, (size_t)(s->n * s->d) * sizeof(real));
    memset(a->item->step_b, 0, (size_t)s->k * sizeof(real));
    return;
  }
  tasks_run(a, steps_task, (s->n + ARROW_CHUNK - 1) / ARROW_CHUNK);
  for (idx j = 0; j < s->k; j++) a->item->step_b[j] = isnan(step[j]) ? nan_canonical() : step[j];
}

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
  steps_write(a);
}

static int is_long(const struct arrow_item *item, int threads)
{
  return threads > 1 && item->system.n >= LONG_ROWS;
}

/* Short systems, whichever is next. */
static void short_solve(const struct device_state *s, struct arrow_job *job, struct arrow_worker *w,
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
static int workers_ready(struct device_state *s, const struct arrow_job *job)
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
  struct device_state *s = dev->state;
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
