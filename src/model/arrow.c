/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems are solved by the formulas as they are written, row after row.  The factors of the
 * rows are not kept, but computed again for the steps. */
#include "model/arrow.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "model/arrow_loss.h"

/* One try to solve a system with given ridges, and the arrays that it needs. */
struct try_work {
  const struct arrow_system *s;
  real ridge_t, ridge_b;
  struct arrow_outcome *out;
  real *block;          /* [d][d] H_i + ridge_t I, column-major */
  real *l, *u, *y;      /* [d][d], [d], [k][d] of one row: L, u = L^-1 g, Y = L^-1 B (N.7, N.8) */
  struct lane_sum *t;   /* [k][k] T and then [k] w (N.9) */
  real *schur, *factor; /* [k][k] column-major (N.10) */
  real *step;           /* [k] */
  struct det_pair rows, border;
};

/* Number of sums in T and w. */
static gidx sums(idx k)
{
  return (gidx)k * k + k;
}

gidx arrow_work(idx d, idx k)
{
  gidx row = 2 * (gidx)d * d + d + (gidx)d * k, border = 2 * (gidx)k * k + k;
  return row + border + sums(k) * (gidx)(sizeof(struct lane_sum) / sizeof(real));
}

/* Point the arrays into work. */
static void work_split(struct try_work *w, real *work)
{
  gidx d = w->s->d, k = w->s->k;
  w->t = (struct lane_sum *)(void *)work;
  work += sums(w->s->k) * (gidx)(sizeof *w->t / sizeof(real));
  w->block = work;
  w->l = w->block + d * d;
  w->u = w->l + d * d;
  w->y = w->u + d;
  w->schur = w->y + d * k;
  w->factor = w->schur + k * k;
  w->step = w->factor + k * k;
}

const char *arrow_status_name(int status)
{
  static const char *const names[] = {"ok", "row not positive definite",
                                      "border not positive definite", "not finite"};
  return names[status];
}

static real canonical(real x)
{
  return isnan(x) ? nan_canonical() : x;
}

idx arrow_cholesky(const real *a, idx n, real *l, struct det_pair *pair)
{
  for (idx j = 0; j < n; j++)
    for (idx i = j; i < n; i++) {
      real acc = a[(gidx)j * n + i];
      for (idx p = 0; p < j; p++) acc = fma(-l[(gidx)p * n + i], l[(gidx)p * n + j], acc);
      if (i > j) {
        l[(gidx)j * n + i] = acc / l[(gidx)j * n + j];
      } else {
        if (!(acc > 0) || !isfinite(acc)) return j;
        *pair = det_pair_pivot(*pair, acc);
        l[(gidx)j * n + j] = sqrt(acc);
      }
    }
  return -1;
}

void arrow_forward(const real *l, idx n, real *x)
{
  for (idx i = 0; i < n; i++) {
    for (idx p = 0; p < i; p++) x[i] = fma(-l[(gidx)p * n + i], x[p], x[i]);
    x[i] = x[i] / l[(gidx)i * n + i];
  }
}

/* x <- L^-T x, each sum in descending order. */
static void substitute_back(const real *l, idx n, real *x)
{
  for (idx i = n - 1; i >= 0; i--) {
    for (idx p = n - 1; p > i; p--) x[i] = fma(-l[(gidx)i * n + p], x[p], x[i]);
    x[i] = x[i] / l[(gidx)i * n + i];
  }
}

/* Entry (i, j) of a symmetric matrix of which the lower triangle is stored. */
static real symmetric(const real *a, idx n, idx i, idx j)
{
  return i > j ? a[(gidx)j * n + i] : a[(gidx)i * n + j];
}

/* The least addition to the diagonal of A that makes it diagonally dominant:
 * max(0, -min_i (A_ii - sum over j != i of |A_ij|)). */
static real deficit(const real *a, idx n)
{
  real min = INFINITY;
  for (idx i = 0; i < n; i++) {
    real sum = 0;
    for (idx j = 0; j < n; j++)
      if (j != i) sum += fabs(symmetric(a, n, i, j));
    real gap = symmetric(a, n, i, i) - sum;
    if (gap < min) min = gap;
  }
  return min < 0 ? -min : 0;
}

/* Suggested addition to a diagonal block (N.14).  unit: the unit of the ridge of such blocks. */
static real bump_row(const real *a, idx n, real unit)
{
  real max = unit;
  for (idx i = 0; i < n; i++) {
    real sum = 0;
    for (idx j = 0; j < n; j++) sum += fabs(symmetric(a, n, i, j));
    if (sum > max) max = sum;
  }
  return deficit(a, n) + 1024 * 0x1p-26 * max;
}

/* Suggested addition to the border (N.14). */
static real bump_border(const real *schur, idx k, real unit)
{
  return deficit(schur, k) + 1e-3 * unit;
}

/* Record a failure; returns its status. */
static int fail(struct try_work *w, int status, gidx at, real bump)
{
  w->out->status = status;
  w->out->failed_at = at;
  w->out->suggested_bump = isfinite(bump) ? bump : nan_canonical();
  return status;
}

/* The first entry that is not finite in the lower triangles of count blocks of n x n; -1: none. */
static gidx triangles_scan(const real *a, gidx count, idx n)
{
  gidx size = (gidx)n * n;
  for (gidx at = 0; at < count * size; at++) {
    gidx j = at % size / n, i = at % n;
    if (i >= j && !isfinite(a[at])) return at;
  }
  return -1;
}

/* The first entry that is not finite; -1: none. */
static gidx scan(const real *a, gidx count)
{
  for (gidx at = 0; at < count; at++)
    if (!isfinite(a[at])) return at;
  return -1;
}

/* The first entry that is read and not finite, counted through H, B, g, C, g_b; -1: none. */
static gidx not_finite(const struct arrow_system *s)
{
  gidx n = s->n, d = s->d, k = s->k, base = 0;
  gidx found[5] = {triangles_scan(s->h, n, s->d), scan(s->b, n * d * k), scan(s->g, n * d),
                   triangles_scan(s->c, 1, s->k), scan(s->g_b, k)};
  const gidx size[5] = {n * d * d, n * d * k, n * d, k * k, k};
  for (int part = 0; part < 5; base += size[part++])
    if (found[part] >= 0) return base + found[part];
  return -1;
}

/* Compute L, u and Y of a row.  Returns 0 if its diagonal block is not positive definite. */
static int row_whiten(struct try_work *w, gidx row, struct det_pair *pair)
{
  const struct arrow_system *s = w->s;
  gidx d = s->d, k = s->k;
  memcpy(w->block, s->h + row * d * d, (size_t)(d * d) * sizeof(real));
  for (gidx m = 0; m < d; m++) w->block[m * d + m] += w->ridge_t;
  if (arrow_cholesky(w->block, s->d, w->l, pair) >= 0) return 0;
  memcpy(w->u, s->g + row * d, (size_t)d * sizeof(real));
  if (k > 0) memcpy(w->y, s->b + row * d * k, (size_t)(d * k) * sizeof(real));
  arrow_forward(w->l, s->d, w->u);
  for (gidx j = 0; j < k; j++) arrow_forward(w->l, s->d, w->y + j * d);
  return 1;
}

/* Add a row's d terms to each sum of T and w (N.9), m ascending. */
static void row_add(struct try_work *w, gidx row)
{
  idx d = w->s->d, k = w->s->k;
  for (idx i = 0; i < k; i++)
    for (idx m = 0; m < d; m++) {
      real y = w->y[(gidx)i * d + m];
      for (idx j = 0; j <= i; j++)
        lane_sum_fma(&w->t[(gidx)j * k + i], row, y, w->y[(gidx)j * d + m]);
      lane_sum_fma(&w->t[(gidx)k * k + i], row, y, w->u[m]);
    }
}

/* The product of the lanes, in the order in which (N.12) adds lanes. */
static struct det_pair pairs_fold(const struct det_pair *lane)
{
  struct det_pair sum[LANE_COUNT];
  memcpy(sum, lane, sizeof sum);
  for (int half = LANE_COUNT / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) sum[i] = det_pair_times(sum[i], sum[i + half]);
  return sum[0];
}

/* Eliminate all rows: T, w and the determinant of the diagonal blocks. */
static int rows_reduce(struct try_work *w)
{
  struct det_pair lane[LANE_COUNT];
  memset(w->t, 0, (size_t)sums(w->s->k) * sizeof *w->t);
  w->rows = det_pair_unit;
  for (gidx row = 0; row < w->s->n; row++) {
    gidx i = row % LANE_SEGMENT;
    if (i == 0)
      for (int a = 0; a < LANE_COUNT; a++) lane[a] = det_pair_unit;
    if (!row_whiten(w, row, &lane[i % LANE_COUNT]))
      return fail(w, ARROW_ROW_NOT_PD, row, bump_row(w->block, w->s->d, ridges_units(w->s).t));
    row_add(w, row);
    if (i == LANE_SEGMENT - 1 || row == w->s->n - 1)
      w->rows = det_pair_times(w->rows, pairs_fold(lane));
  }
  return ARROW_OK;
}

/* Factor the Schur complement and solve for the border (N.10). */
static int border_solve(struct try_work *w)
{
  const struct arrow_system *s = w->s;
  idx k = s->k;
  for (idx j = 0; j < k; j++)
    for (idx i = j; i < k; i++) {
      gidx at = (gidx)j * k + i;
      real c = i == j ? s->c[at] + w->ridge_b : s->c[at];
      w->schur[at] = c - lane_sum_total(&w->t[at]);
    }
  w->border = det_pair_unit;
  idx pivot = arrow_cholesky(w->schur, k, w->factor, &w->border);
  if (pivot >= 0)
    return fail(w, ARROW_SCHUR_NOT_PD, pivot, bump_border(w->schur, k, ridges_units(s).b));
  for (idx j = 0; j < k; j++) w->step[j] = lane_sum_total(&w->t[(gidx)k * k + j]) - s->g_b[j];
  arrow_forward(w->factor, k, w->step);
  substitute_back(w->factor, k, w->step);
  return ARROW_OK;
}

/* out[d] <- the step of a row, by substituting the border's step back (N.11). */
static void row_step(struct try_work *w, gidx row, real *out)
{
  idx d = w->s->d;
  struct det_pair unused = det_pair_unit;
  row_whiten(w, row, &unused);
  for (idx m = 0; m < d; m++)
    for (idx j = 0; j < w->s->k; j++) w->u[m] = fma(w->y[(gidx)j * d + m], w->step[j], w->u[m]);
  substitute_back(w->l, d, w->u);
  for (idx m = 0; m < d; m++) out[m] = canonical(-w->u[m]);
}

/* Solve with the ridges of this try, up to the border's step. */
static int system_try(struct try_work *w)
{
  gidx bad = not_finite(w->s);
  w->out->status = ARROW_OK;
  w->out->failed_at = -1;
  w->out->suggested_bump = 0;
  if (bad >= 0) return fail(w, ARROW_NOT_FINITE, bad, 0);
  int status = rows_reduce(w);
  return status ? status : border_solve(w);
}

/* The first additions to the ridges, from the bump of a system that failed in its first try. */
static struct ridges first_addition(const struct try_work *w)
{
  struct ridges unit = ridges_units(w->s);
  real bump = w->out->suggested_bump;
  return w->out->status == ARROW_ROW_NOT_PD ? ridges_of_row(unit, bump)
                                            : ridges_of_border(unit, bump);
}

/* Try with larger ridges until the system is solved or no further try is allowed (N.15). */
static void escalate(struct try_work *w, const struct arrow_options *o, struct arrow_start start)
{
  struct arrow_outcome *out = w->out;
  out->addition = start.addition;
  for (out->retries = start.retries;; out->retries++) {
    struct ridges base = {o->ridge_t, o->ridge_b}, now = ridges_add(base, out->addition);
    out->ridge_t = w->ridge_t = now.t;
    out->ridge_b = w->ridge_b = now.b;
    int status = system_try(w);
    if (status == ARROW_OK || status == ARROW_NOT_FINITE || !o->escalate) return;
    int is_first = ridges_are_zero(out->addition);
    struct ridges next = is_first ? first_addition(w) : ridges_next(out->addition);
    if (out->retries >= ARROW_MAX_RETRIES || !ridges_are_finite(next)) return;
    out->addition = next;
  }
}

void arrow_reference(const struct arrow_system *s, const struct arrow_options *options,
                     struct arrow_start start, real *step_t, real *step_b,
                     struct arrow_outcome *out, real *work)
{
  struct try_work w = {.s = s, .out = out};
  work_split(&w, work);
  escalate(&w, options, start);
  out->pair = out->status ? det_pair_failed() : det_pair_times(w.rows, w.border);
  out->log_det = det_pair_value(out->pair);
  for (gidx row = 0; row < s->n; row++) {
    real *t = step_t + row * s->d;
    for (idx m = 0; m < s->d; m++) t[m] = 0;
    if (out->status == ARROW_OK) row_step(&w, row, t);
  }
  for (idx j = 0; j < s->k; j++) step_b[j] = out->status == ARROW_OK ? canonical(w.step[j]) : 0;
}
