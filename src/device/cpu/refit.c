/* SPDX-License-Identifier: BSD-3-Clause
 * The operations of a refit on the CPU: threads take items, and the rows of an item go through the
 * loops in groups.
 *
 * A short last group is filled up with its last row, whose results are not used. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/refit_loops.h"
#include "model/directions.h"
#include "model/dictionary.h"
#include "model/step.h"

/* ERR_DEVICE where this processor cannot compute a refit. */
static int refit_check(const struct device *dev)
{
  return cpu_of(dev)->refit ? OK : device_check_fma();
}

/* row[REFIT_GROUP] <- the rows of the group that begins at row i of n; returns how many count. */
static idx group_rows(const real *residual, const idx *rows, idx n, idx i, idx p,
                      const real *row[REFIT_GROUP])
{
  for (idx k = 0; k < REFIT_GROUP; k++)
    row[k] = residual + (gidx)rows[i + k < n ? i + k : n - 1] * p;
  return n - i < REFIT_GROUP ? n - i : REFIT_GROUP;
}

static void item_products(const struct refit_loops *loops, const real *residual, idx p,
                          const struct rows_item *item)
{
  const real *row[REFIT_GROUP];
  real out[MAX_DIRECTIONS * REFIT_GROUP];
  for (idx i = 0; i < item->n; i += REFIT_GROUP) {
    idx n = group_rows(residual, item->rows, item->n, i, p, row);
    loops->products(row, item->vectors, item->count, p, out);
    for (idx k = 0; k < n; k++)
      for (idx v = 0; v < item->count; v++)
        item->out[(gidx)(i + k) * item->stride + v] = out[v * REFIT_GROUP + k];
  }
}

int cpu_row_products(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                     gidx count)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  TRY(refit_check(dev));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) item_products(loops, residual, p, items + i);
  return OK;
}

int cpu_row_sums(struct device *dev, const real *residual, idx p, const struct rows_item *items,
                 gidx count)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  TRY(refit_check(dev));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++)
    for (idx v = 0; v < items[i].count; v++)
      loops->sum(residual, items[i].rows, items[i].n, p, items[i].vectors + v, items[i].stride,
                 items[i].out + (gidx)v * p);
  return OK;
}

/* A frame that is not positive definite: NaN for all rows. */
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
  const real *row[REFIT_GROUP];
  real l[MAX_FRAME * MAX_FRAME], t_old[MAX_FRAME * REFIT_GROUP], t_new[MAX_FRAME * REFIT_GROUP];
  real objective[REFIT_GROUP];
  idx d = job->d;
  if (!step_factor(item->u_new, d, job->p, job->rho, l)) {
    item_fail(item, d);
    return;
  }
  struct group_move move = {row,   item->u_old, item->u_new, l,
                            t_old, t_new,       objective,   work,
                            d,     job->p,      job->rho,    job->nonnegative};
  for (idx i = 0; i < item->n; i += REFIT_GROUP) {
    idx n = group_rows(job->residual, item->rows, item->n, i, job->p, row);
    for (idx k = 0; k < REFIT_GROUP; k++)
      for (idx m = 0; m < d; m++)
        t_old[m * REFIT_GROUP + k] = item->t_old[(gidx)(k < n ? i + k : i) * d + m];
    loops->move(&move);
    for (idx k = 0; k < n; k++) {
      item->objective[i + k] = objective[k];
      for (idx m = 0; m < d; m++) item->t_new[(gidx)(i + k) * d + m] = t_new[m * REFIT_GROUP + k];
    }
  }
}

int cpu_moves_try(struct device *dev, const struct moves_job *job)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  struct arena arena = {0};
  real *works;
  gidx each = (gidx)job->p * REFIT_GROUP, next = 0;
  TRY(refit_check(dev));
  TRY(arena_alloc(&arena, &works, threads * each, sizeof *works));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
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

int cpu_moves_keep(struct device *dev, const struct moves_job *job)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  idx d = job->d, p = job->p;
  TRY(refit_check(dev));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < job->count; i++) {
    const struct move_item *item = job->items + i;
    for (idx k = 0; k < item->n; k++)
      loops->keep(job->residual + (gidx)item->rows[k] * p, item->u_old, item->t_old + (gidx)k * d,
                  item->u_new, item->t_new + (gidx)k * d, d, p);
  }
  return OK;
}

/* direction_keep of model/directions.h with the loops of this processor: v[p] loses its parts along
 * frame and directions, twice; returns whether anything is left. */
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

int cpu_directions_keep(struct device *dev, idx d, idx p, const struct keep_item *items, gidx count)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  TRY(refit_check(dev));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (gidx i = 0; i < count; i++) {
    const struct keep_item *item = items + i;
    for (idx at = 0; at < item->count && *item->n_kept < item->max; at++) {
      real *v = item->kept + (gidx)*item->n_kept * p;
      memcpy(v, item->candidate + (gidx)at * p, (size_t)p * sizeof *v);
      *item->n_kept += candidate_keep(loops, item, d, p, v);
    }
  }
  return OK;
}

int cpu_residuals(struct device *dev, const struct residual_job *job)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  struct arena arena = {0};
  const real **vectors;
  idx m = job->s * job->d, s = job->s, d = job->d, p = job->p;
  TRY(refit_check(dev));
  TRY(arena_alloc(&arena, &vectors, (gidx)threads * m, sizeof *vectors));
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
