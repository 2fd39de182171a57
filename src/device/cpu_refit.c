/* SPDX-License-Identifier: BSD-3-Clause
 * The refit's operations on the CPU: threads take items, items take rows in groups.
 *
 * A short last group is filled up with its last row, whose results are not used. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "device/cpu.h"
#include "device/refit_loops.h"
#include "model/directions.h"
#include "model/dictionary.h"
#include "model/step.h"

static const struct refit_loops *loops_of(const struct device *dev)
{
  return dev->state->codes == &codes_avx512 ? &refit_avx512 : &refit_avx2;
}

static int begin(const struct device *dev)
{
  if (!dev->state->codes) TRY(device_check_fma());
  return OK;
}

void device_share(struct device *dev, gidx count, void (*task)(void *self, gidx i), void *self)
{
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) task(self, i);
}

/* The rows of the group that begins at row i of n. */
static idx group_rows(const real *residual, const idx *rows, idx n, idx i, idx p,
                      const real *row[GROUP])
{
  for (idx k = 0; k < GROUP; k++) row[k] = residual + (gidx)rows[i + k < n ? i + k : n - 1] * p;
  return n - i < GROUP ? n - i : GROUP;
}

static void item_products(const struct refit_loops *loops, const real *residual, idx p,
                          const struct rows_item *item)
{
  const real *row[GROUP];
  real out[DIRECTIONS_MOST * GROUP];
  for (idx i = 0; i < item->n; i += GROUP) {
    idx n = group_rows(residual, item->rows, item->n, i, p, row);
    loops->products(row, item->vectors, item->count, p, out);
    for (idx k = 0; k < n; k++)
      for (idx v = 0; v < item->count; v++)
        item->out[(gidx)(i + k) * item->stride + v] = out[v * GROUP + k];
  }
}

int device_row_products(struct device *dev, const real *residual, idx p,
                        const struct rows_item *items, gidx count)
{
  const struct refit_loops *loops = loops_of(dev);
  TRY(begin(dev));
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) item_products(loops, residual, p, items + i);
  return OK;
}

int device_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                    gidx count)
{
  const struct refit_loops *loops = loops_of(dev);
  TRY(begin(dev));
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++)
    for (idx v = 0; v < items[i].count; v++)
      loops->sum(residual, items[i].rows, items[i].n, p, items[i].vectors + v, items[i].stride,
                 items[i].out + (gidx)v * p);
  return OK;
}

static void item_fail(const struct move_item *item, idx d)
{
  for (idx i = 0; i < item->n; i++) {
    item->objective[i] = nan_canonical();
    for (idx m = 0; m < d; m++) item->t_new[(gidx)i * d + m] = nan_canonical();
  }
}

static void item_move(const struct refit_loops *loops, const struct moves_job *job,
                      const struct move_item *item, real *work)
{
  const real *row[GROUP];
  real l[FRAME_MOST * FRAME_MOST], t_old[FRAME_MOST * GROUP], t_new[FRAME_MOST * GROUP];
  real objective[GROUP];
  idx d = job->d;
  if (!step_factor(item->u_new, d, job->p, job->rho, l)) {
    item_fail(item, d);
    return;
  }
  struct group_move move = {row,       item->u_old, item->u_new, l,      t_old,   t_new,
                            objective, work,        d,           job->p, job->rho};
  for (idx i = 0; i < item->n; i += GROUP) {
    idx n = group_rows(job->residual, item->rows, item->n, i, job->p, row);
    for (idx k = 0; k < GROUP; k++)
      for (idx m = 0; m < d; m++)
        t_old[m * GROUP + k] = item->t_old[(gidx)(k < n ? i + k : i) * d + m];
    loops->move(&move);
    for (idx k = 0; k < n; k++) {
      item->objective[i + k] = objective[k];
      for (idx m = 0; m < d; m++) item->t_new[(gidx)(i + k) * d + m] = t_new[m * GROUP + k];
    }
  }
}

static int works_take(const struct device *dev, struct arena *arena, gidx each, real **works)
{
  return arena_take(arena, works, dev->state->options.threads * each, sizeof **works);
}

int device_moves_try(struct device *dev, const struct moves_job *job)
{
  const struct refit_loops *loops = loops_of(dev);
  struct arena arena = {0};
  real *works;
  gidx each = (gidx)job->p * GROUP, next = 0;
  TRY(begin(dev));
  TRY(works_take(dev, &arena, each, &works));
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(static, 1)
  for (int t = 0; t < dev->state->options.threads; t++)
    for (;;) {
      gidx i;
#pragma omp atomic capture
      i = next++;
      if (i >= job->count) break;
      item_move(loops, job, job->items + i, works + t * each);
    }
  arena_free(&arena);
  return OK;
}

int device_moves_keep(struct device *dev, const struct moves_job *job)
{
  const struct refit_loops *loops = loops_of(dev);
  idx d = job->d, p = job->p;
  TRY(begin(dev));
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(dynamic, 1)
  for (gidx i = 0; i < job->count; i++) {
    const struct move_item *item = job->items + i;
    for (idx k = 0; k < item->n; k++)
      loops->keep(job->residual + (gidx)item->rows[k] * p, item->u_old, item->t_old + (gidx)k * d,
                  item->u_new, item->t_new + (gidx)k * d, d, p);
  }
  return OK;
}

/* direction_keep, with the loops of this processor. */
static int candidate_keep(const struct refit_loops *loops, const struct keep_item *item, idx d,
                          idx p, real *v)
{
  real before = sqrt(loops->dot(v, v, p));
  for (int pass = 0; pass < 2; pass++) {
    for (idx m = 0; m < d; m++) {
      const real *b = item->frame + (gidx)m * p;
      loops->subtract(loops->dot(b, v, p), b, p, v);
    }
    for (idx j = 0; j < *item->n_kept; j++) {
      const real *b = item->kept + (gidx)j * p;
      loops->subtract(loops->dot(b, v, p), b, p, v);
    }
  }
  real norm = sqrt(loops->dot(v, v, p));
  if (!(norm > DIRECTION_TOLERANCE * before) || !isfinite(norm)) return 0;
  for (idx c = 0; c < p; c++) v[c] /= norm;
  return 1;
}

int device_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items,
                           gidx count)
{
  const struct refit_loops *loops = loops_of(dev);
  TRY(begin(dev));
#pragma omp parallel for num_threads(dev->state->options.threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) {
    const struct keep_item *item = items + i;
    for (idx at = 0; at < item->count && *item->n_kept < item->most; at++) {
      real *v = item->kept + (gidx)*item->n_kept * p;
      memcpy(v, item->candidate + (gidx)at * p, (size_t)p * sizeof *v);
      *item->n_kept += candidate_keep(loops, item, d, p, v);
    }
  }
  return OK;
}

int device_residuals(struct device *dev, const struct residual_job *job)
{
  const struct refit_loops *loops = loops_of(dev);
  struct arena arena = {0};
  const real **vectors;
  idx m = job->s * job->d, s = job->s, d = job->d, p = job->p,
      threads = dev->state->options.threads;
  TRY(begin(dev));
  TRY(arena_take(&arena, &vectors, (gidx)threads * m, sizeof *vectors));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (idx i = (idx)((gidx)job->n * t / threads); i < (gidx)job->n * (t + 1) / threads; i++) {
      const real **vector = vectors + (gidx)t * m;
      for (idx j = 0; j < m; j++)
        vector[j] = job->frames + ((gidx)job->atoms[(gidx)i * s + j / d] * d + j % d) * p;
      loops->residual(job->rows + (gidx)i * p, vector, m, p, job->codes + (gidx)i * m,
                      job->residual + (gidx)i * p);
    }
  arena_free(&arena);
  return OK;
}
