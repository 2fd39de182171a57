/* SPDX-License-Identifier: BSD-3-Clause
 * One attempt to solve a system.  Its rows are whitened and summed in chunks, the Schur complement
 * of the border is factored and solved, and back substitution gives the steps of the rows.  For a
 * long system, the threads share segments and lanes, and then chunks of steps. */
#include "device/cpu/arrow_try.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "device/cpu/arrow_failure.h"

enum { PARTS = LANE_COUNT / ARROW_PART };

/* The chunk of rows that begins at `first`, for the loops.  A cached system has a panel for each
 * chunk. */
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
    pairs->m[i] = det_pair_unit.m;
    pairs->e[i] = det_pair_unit.e;
  }
}

/* Sum some lanes of one segment (N.12).  The sums of segment a->first_segment + j go to worker
 * j. */
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

static struct det_pair pairs_fold(const struct arrow_pairs *pairs)
{
  struct det_pair lane[LANE_COUNT];
  for (int i = 0; i < LANE_COUNT; i++) lane[i] = (struct det_pair){pairs->m[i], pairs->e[i]};
  for (int half = LANE_COUNT / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) lane[i] = det_pair_times(lane[i], lane[i + half]);
  return lane[0];
}

/* Add the sums of a segment to workers[0].total, and its pivots to the determinant pair. */
static void segment_add(struct attempt *a, gidx segment, const struct arrow_worker *from)
{
  const struct arrow_system *s = &a->item->system;
  gidx left = s->n - segment * LANE_SEGMENT, count = s->k > 0 ? arrow_sums(s->k) : 0;
  idx used = left < LANE_COUNT ? (idx)left : LANE_COUNT;
  real *total = a->workers->total, *sum = segment == 0 ? total : a->workers->segment;
  a->loops->fold(from->sums, count, used, sum);
  for (gidx i = 0; segment > 0 && i < count; i++) total[i] += sum[i];
  a->pair = det_pair_times(a->pair, pairs_fold(&from->at));
}

/* (N.9) Sum T, w and the pair over all rows; returns whether all pivots were good. */
static int rows_reduce(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  gidx segments = (s->n + LANE_SEGMENT - 1) / LANE_SEGMENT;
  int parts = a->threads > 1 ? PARTS : 1;
  a->pair = det_pair_unit;
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
    w->step_b[j] = w->total[(gidx)k * (k + 1) / 2 + j] - s->g_b[j];
  }
}

/* Could an entry that is not finite have spoilt the sums?  If so, the entries must be checked. */
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

/* (N.10) Factor and solve the Schur complement; its pivots multiply the pair. */
static int border_solve(struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  struct arrow_worker *w = a->workers;
  idx k = s->k, stride = stride_of(k);
  struct det_pair border = det_pair_unit;
  idx bad = a->loops->border_factor(w->schur, k, stride, w->pivot);
  if (bad >= 0) {
    border_make(a); /* again, since the factor has overwritten it */
    attempt_fail_border(a, bad);
    return 0;
  }
  for (idx j = 0; j < k; j++) border = det_pair_pivot(border, w->pivot[j]);
  a->pair = det_pair_times(a->pair, border);
  a->loops->border_solve(w->schur, k, stride, w->step_b);
  return 1;
}

void attempt_solve(struct attempt *a)
{
  struct arrow_outcome *out = &a->item->outcome;
  out->status = ARROW_OK;
  out->failed_at = -1;
  out->suggested_bump = 0;
  int has_rows = rows_reduce(a);
  if (has_rows) border_make(a);
  int has_border = has_rows && !is_suspect(a) && border_solve(a);
  if (has_border) return;
  if (attempt_fail_entry(a)) return;
  if (!has_rows)
    attempt_fail_row(a);
  else if (out->status == ARROW_OK) /* all entries are finite, though the sums are not */
    border_solve(a);
}

/* (N.11) The steps of one chunk of rows. */
static void steps_task(struct attempt *a, struct arrow_worker *worker, gidx i)
{
  const struct arrow_system *s = &a->item->system;
  struct arrow_rows rows = rows_view(a, worker, i * ARROW_CHUNK, s->n);
  struct arrow_pairs unused;
  pairs_start(&unused);
  if (!a->is_cached) a->loops->whiten(&rows, &unused);
  a->loops->steps(&rows, a->workers->step_b, a->item->step_t);
}

void attempt_steps(struct attempt *a)
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
