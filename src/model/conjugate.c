/* SPDX-License-Identifier: BSD-3-Clause
 * The formulas, computed for one column after another. */
#include "model/conjugate.h"

#include <math.h>

#include "base/status.h"
#include "base/sums.h"

void conjugate_weigh(const struct normal_rows *rows, real *weight)
{
  for (gidx e = 0; e < (gidx)rows->n * rows->s; e++) {
    real *w = &weight[rows->atoms[e]], t = rows->codes[e];
    if (t != 0) *w = fma(t, t, *w);
  }
}

/* The column that is being improved. */
struct column {
  const struct normal_rows *rows;
  idx k;
  const real *held, *weight;
  real *r, *q;             /* [n] residuals x - C d of the rows, and C p */
  real *start, *d, *g, *p; /* [k] d0, d, gradient, direction */
};

/* acc[n] <- acc + sign C v; sign is 1 or -1. */
static void rows_add(const struct column *w, real sign, const real *v, real *acc)
{
  for (gidx e = 0; e < (gidx)w->rows->n * w->rows->s; e++) {
    real t = w->rows->codes[e], *to = &acc[e / w->rows->s];
    if (t != 0) *to = fma(sign * v[w->rows->atoms[e]], t, *to);
  }
}

static void gradient(const struct column *w)
{
  for (idx a = 0; a < w->k; a++)
    w->g[a] = w->held[a] == 0 ? 0 : w->held[a] * (w->start[a] - w->d[a]);
  for (gidx e = 0; e < (gidx)w->rows->n * w->rows->s; e++) {
    real t = w->rows->codes[e], *to = &w->g[w->rows->atoms[e]];
    if (t != 0) *to = fma(t, w->r[e / w->rows->s], *to);
  }
}

/* The preconditioned gradient of an atom.  It is 0 for an atom without codes, so that the atom
 * stays as it is. */
static real scaled(const struct column *w, idx a)
{
  return w->weight[a] > 0 ? w->g[a] / w->weight[a] : 0;
}

static real gain(const struct column *w)
{
  struct row_sum sum = {0};
  for (idx a = 0; a < w->k; a++) row_sum_add(&sum, w->g[a] * scaled(w, a));
  return row_sum_total(&sum);
}

/* p'(C'C + H) p */
static real curvature(const struct column *w)
{
  struct row_sum rows = {0}, atoms = {0};
  for (idx i = 0; i < w->rows->n; i++) row_sum_add(&rows, w->q[i] * w->q[i]);
  for (idx a = 0; a < w->k; a++) row_sum_add(&atoms, w->held[a] * w->p[a] * w->p[a]);
  return row_sum_total(&rows) + row_sum_total(&atoms);
}

static real over(real a, real b)
{
  return b > 0 ? a / b : 0;
}

static void column_descend(const struct column *w, idx steps)
{
  real before = 0;
  rows_add(w, -1, w->d, w->r);
  for (idx step = 0; step < steps; step++) {
    gradient(w);
    real now = gain(w), beta = over(now, before);
    for (idx a = 0; a < w->k; a++) w->p[a] = fma(beta, w->p[a], scaled(w, a));
    for (idx i = 0; i < w->rows->n; i++) w->q[i] = 0;
    rows_add(w, 1, w->p, w->q);
    real alpha = over(now, curvature(w));
    for (idx a = 0; a < w->k; a++) w->d[a] = fma(alpha, w->p[a], w->d[a]);
    for (idx i = 0; i < w->rows->n; i++) w->r[i] = fma(-alpha, w->q[i], w->r[i]);
    before = now;
  }
}

static int column_alloc(struct column *w, struct arena *arena)
{
  TRY(arena_alloc(arena, &w->r, w->rows->n, sizeof(real)));
  TRY(arena_alloc(arena, &w->q, w->rows->n, sizeof(real)));
  TRY(arena_alloc(arena, &w->start, w->k, sizeof(real)));
  TRY(arena_alloc(arena, &w->d, w->k, sizeof(real)));
  TRY(arena_alloc(arena, &w->g, w->k, sizeof(real)));
  return arena_alloc(arena, &w->p, w->k, sizeof(real));
}

int conjugate_descend(const struct normal_rows *rows, idx k, const real *held, const real *weight,
                      idx steps, real *atoms)
{
  struct column w = {.rows = rows, .k = k, .held = held, .weight = weight};
  struct arena arena = {0};
  int status = column_alloc(&w, &arena);
  for (gidx c = 0; c < rows->p && !status; c++) {
    for (gidx i = 0; i < rows->n; i++) w.r[i] = rows->x[i * rows->p + c];
    for (gidx a = 0; a < k; a++) {
      w.start[a] = w.d[a] = atoms[a * rows->p + c];
      w.p[a] = 0;
    }
    column_descend(&w, steps);
    for (gidx a = 0; a < k; a++) atoms[a * rows->p + c] = w.d[a];
  }
  arena_free(&arena);
  return status;
}
