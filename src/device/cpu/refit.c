/* SPDX-License-Identifier: BSD-3-Clause
 * The operations of a refit on the CPU: threads take items, and the loops take the rows of an
 * item. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/refit_loops.h"
#include "model/directions.h"
#include "model/dictionary.h"
#include "model/relax.h"
#include "model/step.h"

/* ERR_DEVICE if this processor cannot compute a refit. */
static int refit_check(const struct device *dev)
{
  return cpu_of(dev)->refit ? OK : device_check_fma();
}

static void item_products(const struct refit_loops *loops, const real *residual, idx p,
                          const struct rows_item *item)
{
  for (idx i = 0; i < item->n; i++)
    loops->products(residual + (gidx)item->rows[i] * p, item->vectors, item->count, p,
                    item->out + (gidx)i * item->stride);
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

/* For a frame whose Gram matrix plus rho is not positive definite: NaN for all rows. */
static void item_fail(const struct move_item *item, idx d)
{
  for (idx i = 0; i < item->n; i++) {
    item->objective[i] = nan_canonical();
    for (idx m = 0; m < d; m++) item->t_new[(gidx)i * d + m] = nan_canonical();
  }
}

/* step_row() of model/step.h.  The new residual is left in `work`; returns the objective. */
static real row_try(const struct refit_loops *loops, const struct row_move *move, const real *r,
                    const real *t_old, real *t_new, real *work)
{
  idx d = move->d, p = move->p;
  real b[MAX_FRAME], squares;
  loops->add(r, move->u_old, t_old, 1, d, p, work);
  loops->products(work, move->u_new, d, p, b);
  step_solve(move->l, d, b, t_new);
  if (move->nonnegative && !(t_new[0] > 0)) t_new[0] = 0;
  loops->add(work, move->u_new, t_new, -1, d, p, work);
  loops->products(work, NULL, 1, p, &squares);
  return fma(move->rho, chain_dot(t_new, t_new, d), squares);
}

static void item_move(const struct refit_loops *loops, const struct moves_job *job,
                      const struct move_item *item, real *work)
{
  real l[MAX_FRAME * MAX_FRAME];
  idx d = job->d, p = job->p;
  if (!step_factor(item->u_new, d, p, job->rho, l)) {
    item_fail(item, d);
    return;
  }
  struct row_move move = {d, p, job->rho, job->nonnegative, item->u_old, item->u_new, l};
  for (idx i = 0; i < item->n; i++)
    item->objective[i] = row_try(loops, &move, job->residual + (gidx)item->rows[i] * p,
                                 item->t_old + (gidx)i * d, item->t_new + (gidx)i * d, work);
}

int cpu_moves_try(struct device *dev, const struct moves_job *job)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  int threads = cpu_of(dev)->options.threads;
  struct arena arena = {0};
  real *works;
  gidx each = job->p, next = 0;
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
    for (idx k = 0; k < item->n; k++) {
      real *r = job->residual + (gidx)item->rows[k] * p;
      loops->add(r, item->u_old, item->t_old + (gidx)k * d, 1, d, p, r);
      loops->add(r, item->u_new, item->t_new + (gidx)k * d, -1, d, p, r);
    }
  }
  return OK;
}

/* direction_keep() of model/directions.h with the loops of this processor: subtract from v[p] its
 * parts along the frame and the kept directions, twice, and normalise it.  Returns whether v is
 * kept. */
static int candidate_keep(const struct refit_loops *loops, const struct keep_item *item, idx d,
                          idx p, real *v)
{
  idx kept = *item->n_kept;
  real before, after, along_frame[MAX_FRAME], along_kept[MAX_DIRECTIONS];
  loops->products(v, NULL, 1, p, &before);
  for (int pass = 0; pass < 2; pass++) {
    loops->products(v, item->frame, d, p, along_frame);
    loops->products(v, item->kept, kept, p, along_kept);
    loops->add(v, item->frame, along_frame, -1, d, p, v);
    loops->add(v, item->kept, along_kept, -1, kept, p, v);
  }
  loops->products(v, NULL, 1, p, &after);
  real norm = sqrt(after);
  if (!(norm > DIRECTION_TOLERANCE * sqrt(before)) || !isfinite(norm)) return 0;
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

real cpu_frame_end(const struct device *dev, const struct frame_end *end)
{
  const struct refit_loops *loops = cpu_of(dev)->refit;
  if (loops && end->d == 1) {
    if (end->further != 0) loops->relax(end->frame, end->table, end->p, end->further);
    return loops->round(end->frame, end->table, end->p);
  }
  frame_relax(end->frame, end->table, end->d, end->p, end->further);
  return frame_round(end->frame, end->table, end->d, end->p);
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
