/* SPDX-License-Identifier: BSD-3-Clause
 * First the formulas of a step, then the reference, which combines them. */
#include "model/step.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/assembly.h"
#include "model/dictionary.h"
#include "model/directions.h"

int step_frame(const real *frame, const real *e, idx d, idx q, idx p, const real *beta, real *out)
{
  for (idx m = 0; m < d; m++)
    for (idx c = 0; c < p; c++) {
      real acc = frame[(gidx)m * p + c];
      for (idx j = 0; j < q; j++) acc = fma(e[(gidx)j * p + c], beta[j * d + m], acc);
      out[(gidx)m * p + c] = acc;
    }
  if (frame_orthonormalize(out, d, p) < d) return 0;
  for (gidx i = 0; i < (gidx)d * p; i++)
    if (!isfinite(out[i])) return 0;
  return 1;
}

int step_factor(const real *frame, idx d, idx p, real rho, real *l)
{
  for (idx j = 0; j < d; j++)
    for (idx i = j; i < d; i++) {
      real acc = lane_product(frame + (gidx)i * p, frame + (gidx)j * p, p);
      if (i == j) acc += rho;
      for (idx k = 0; k < j; k++) acc = fma(-l[i * d + k], l[j * d + k], acc);
      if (i > j) {
        l[i * d + j] = acc / l[j * d + j];
        continue;
      }
      if (!(acc > 0) || !isfinite(acc)) return 0;
      l[j * d + j] = d == 1 ? acc : sqrt(acc);
    }
  return 1;
}

void step_solve(const real *l, idx d, const real *b, real *t)
{
  if (d == 1) {
    t[0] = b[0] / l[0];
    return;
  }
  for (idx i = 0; i < d; i++) {
    real acc = b[i];
    for (idx k = 0; k < i; k++) acc = fma(-l[i * d + k], t[k], acc);
    t[i] = acc / l[i * d + i];
  }
  for (idx i = d - 1; i >= 0; i--) {
    real acc = t[i];
    for (idx k = d - 1; k > i; k--) acc = fma(-l[k * d + i], t[k], acc);
    t[i] = acc / l[i * d + i];
  }
}

real row_objective(const real *e, idx p, const real *t, idx d, real rho)
{
  return fma(rho, chain_dot(t, t, d), lane_product(e, e, p));
}

real step_row(const struct row_move *move, const real *r, const real *t_old, real *t_new,
              real *r_new)
{
  idx d = move->d, p = move->p;
  real b[MAX_FRAME] = {0};
  for (idx c = 0; c < p; c++) {
    r_new[c] = r[c];
    for (idx m = 0; m < d; m++) r_new[c] = fma(move->u_old[(gidx)m * p + c], t_old[m], r_new[c]);
  }
  for (idx m = 0; m < d; m++) b[m] = lane_product(r_new, move->u_new + (gidx)m * p, p);
  step_solve(move->l, d, b, t_new);
  if (move->nonnegative && !(t_new[0] > 0)) t_new[0] = 0;
  for (idx c = 0; c < p; c++)
    for (idx m = 0; m < d; m++) r_new[c] = fma(-move->u_new[(gidx)m * p + c], t_new[m], r_new[c]);
  return row_objective(r_new, p, t_new, d, move->rho);
}

int step_retry(const struct arrow_system *s, const struct arrow_outcome *last,
               struct arrow_start *next)
{
  int is_first = ridges_are_zero(last->addition);
  next->addition = is_first ? ridges_of_rise(ridges_units(s)) : ridges_next(last->addition);
  next->retries = last->retries + 1;
  return next->retries <= ARROW_MAX_RETRIES && ridges_are_finite(next->addition);
}

/* An atom's system, and the result of one try. */
struct trial {
  const struct atom_view *a;
  struct arrow_system system;
  const real *e;
  idx q;
  real *step_t, *step_b, *work;
  real *frame, *codes, *residual; /* after the step that is tried */
};

/* Find directions and system, and allocate the other arrays. */
static int trial_alloc(struct trial *w, struct arena *arena, idx q)
{
  const struct atom_view *a = w->a;
  gidx n = a->n, d = a->d, p = a->p;
  real *e;
  TRY(arena_alloc(arena, &e, (gidx)q * p, sizeof(real)));
  TRY(directions_reference(a, q, e, &w->q));
  w->e = e;
  TRY(assembly_reference(a, e, w->q, arena, &w->system));
  TRY(arena_alloc(arena, &w->step_t, n * d, sizeof(real)));
  TRY(arena_alloc(arena, &w->step_b, w->system.k, sizeof(real)));
  TRY(arena_alloc(arena, &w->work, arrow_work(a->d, w->system.k), sizeof(real)));
  TRY(arena_alloc(arena, &w->frame, d * p, sizeof(real)));
  TRY(arena_alloc(arena, &w->codes, n * d, sizeof(real)));
  return arena_alloc(arena, &w->residual, n * p, sizeof(real));
}

/* Compute frame, codes and residuals after the step; returns the objective, or NaN if the step
 * gives no frame. */
static real trial_objective(struct trial *w)
{
  const struct atom_view *a = w->a;
  idx d = a->d, p = a->p;
  real l[MAX_FRAME * MAX_FRAME];
  struct lane_sum sum = {0};
  if (!step_frame(a->frame, w->e, d, w->q, p, w->step_b, w->frame)) return nan_canonical();
  if (!step_factor(w->frame, d, p, a->rho, l)) return nan_canonical();
  struct row_move move = {d, p, a->rho, a->nonnegative, a->frame, w->frame, l};
  for (gidx i = 0; i < a->n; i++)
    lane_sum_fma(
        &sum, i,
        step_row(&move, a->residual[i], a->codes + i * d, w->codes + i * d, w->residual + i * p),
        1);
  return lane_sum_total(&sum);
}

/* Solve and try until a step is accepted or there is no next try. */
static void trials_run(struct trial *w, struct step_outcome *out)
{
  const struct atom_view *a = w->a;
  const struct arrow_options options = {.escalate = 1};
  struct arrow_start start = {0};
  struct lane_sum before = {0};
  for (gidx i = 0; i < a->n; i++)
    lane_sum_fma(&before, i, row_objective(a->residual[i], a->p, a->codes + i * a->d, a->d, a->rho),
                 1);
  do {
    arrow_reference(&w->system, &options, start, w->step_t, w->step_b, &out->arrow, w->work);
    if (out->arrow.status != ARROW_OK) return;
    out->accepted = trial_objective(w) <= lane_sum_total(&before);
  } while (!out->accepted && step_retry(&w->system, &out->arrow, &start));
}

int step_reference(const struct atom_view *a, idx q, real *frame, real *codes,
                   real *const *residual, struct step_outcome *out)
{
  struct arena arena = {0};
  struct trial w = {.a = a};
  *out = (struct step_outcome){0};
  int status = trial_alloc(&w, &arena, q);
  if (!status) trials_run(&w, out);
  if (!status && out->accepted) {
    memcpy(frame, w.frame, (size_t)(a->d * a->p) * sizeof *frame);
    memcpy(codes, w.codes, (size_t)(a->n * a->d) * sizeof *codes);
    for (gidx i = 0; i < a->n; i++)
      memcpy(residual[i], w.residual + i * a->p, (size_t)a->p * sizeof(real));
  }
  arena_free(&arena);
  return status;
}
