/* SPDX-License-Identifier: BSD-3-Clause
 * Newton's method; a step that raises the objective is halved.  exp and log are computed here, so
 * that weights have the same bits everywhere. */
#include "model/logistic.h"

#include <math.h>

#include "base/det_pair.h"

enum { SIZE = LOGISTIC_MOST + 1, STEPS = 50, HALVINGS = 30 };
#define SMALL_STEP 1e-9 /* of a weight, relative to 1 + |weight| */

/* exp(x) for |x| <= 700, to a few units in the last place. */
static real exp_portable(real x)
{
  enum { TERMS = 14 };
  real whole = floor(x * 1.4426950408889634 + 0.5), sum = 1;
  real rest = (x - whole * 0x1.62e42fefap-1) - whole * 0x1.cf79abc9e3b3ap-40;
  for (int i = TERMS; i > 0; i--) sum = 1 + rest / i * sum;
  return ldexp(sum, (int)whole);
}

/* Returns log(1 + exp(-x)); *slope <- 1 / (1 + exp(x)), which is minus its derivative. */
static real loss(real x, real *slope)
{
  real size = fabs(x) < 700 ? fabs(x) : 700, e = exp_portable(-size);
  *slope = x > 0 ? e / (1 + e) : 1 / (1 + e);
  return (x > 0 ? 0 : size) + log_portable(1 + e);
}

real logistic_score(int k, const real *weight, const float *score)
{
  real z = weight[k];
  for (int i = 0; i < k; i++) z += weight[i] * score[i];
  return z;
}

/* The objective at a point; its gradient and Hessian. */
struct local {
  real value, gradient[SIZE], hessian[SIZE][SIZE];
};

/* Add `times` rows with the same label and scores. */
static void rows_add(struct local *l, int k, const real *weight, const float *score, int label,
                     real times)
{
  real slope, z = logistic_score(k, weight, score), x[SIZE];
  l->value += times * loss(label ? z : -z, &slope);
  for (int i = 0; i <= k; i++) x[i] = i < k ? score[i] : 1;
  for (int i = 0; i <= k; i++) {
    l->gradient[i] += times * (label ? -slope : slope) * x[i];
    for (int j = 0; j <= i; j++) l->hessian[i][j] += times * slope * (1 - slope) * x[i] * x[j];
  }
}

static void local_find(const struct logistic_rows *rows, const real *weight, struct local *l)
{
  static const float zero[LOGISTIC_MOST];
  int k = rows->k;
  *l = (struct local){0};
  for (gidx r = 0; r < rows->listed; r++)
    rows_add(l, k, weight, rows->score + r * k, rows->label[r], 1);
  rows_add(l, k, weight, zero, 1, (real)rows->others_label);
  rows_add(l, k, weight, zero, 0, (real)(rows->others - rows->others_label));
  for (int i = 0; i < k; i++) {
    l->value += weight[i] * weight[i] / 2;
    l->gradient[i] += weight[i];
    l->hessian[i][i] += 1;
  }
}

/* step[size] <- H^-1 g by Cholesky.  Returns 0 if H is not positive definite in this arithmetic. */
static int step_solve(const struct local *l, int size, real *step)
{
  real factor[SIZE][SIZE];
  for (int i = 0; i < size; i++) {
    real right = l->gradient[i];
    for (int j = 0; j <= i; j++) {
      real sum = l->hessian[i][j];
      for (int m = 0; m < j; m++) sum -= factor[i][m] * factor[j][m];
      if (i == j && !(sum > 0)) return 0;
      factor[i][j] = i == j ? sqrt(sum) : sum / factor[j][j];
      if (j < i) right -= factor[i][j] * step[j];
    }
    step[i] = right / factor[i][i];
  }
  for (int i = size - 1; i >= 0; i--) {
    for (int j = i + 1; j < size; j++) step[i] -= factor[j][i] * step[j];
    step[i] /= factor[i][i];
  }
  return 1;
}

/* Subtract a step from the weights; the step is halved until the objective does not rise.  Returns
 * 0 if the weights hardly move, or if the objective still rises after HALVINGS halvings. */
static int weight_move(const struct logistic_rows *rows, struct local *l, const real *step,
                       real *weight)
{
  real scale = 1;
  for (int h = 0; h < HALVINGS; h++, scale /= 2) {
    struct local next;
    real trial[SIZE];
    int moves = 0;
    for (int i = 0; i <= rows->k; i++) {
      trial[i] = weight[i] - scale * step[i];
      moves |= fabs(scale * step[i]) > SMALL_STEP * (1 + fabs(weight[i]));
    }
    if (!moves) return 0;
    local_find(rows, trial, &next);
    if (next.value > l->value) continue;
    for (int i = 0; i <= rows->k; i++) weight[i] = trial[i];
    *l = next;
    return 1;
  }
  return 0;
}

void logistic_fit(const struct logistic_rows *rows, real *weight)
{
  struct local l;
  real step[SIZE];
  gidx labels = rows->others_label, all = rows->others + rows->listed;
  for (gidx r = 0; r < rows->listed; r++) labels += rows->label[r];
  for (int i = 0; i < rows->k; i++) weight[i] = 0;
  weight[rows->k] = log_portable(((real)labels + 1) / ((real)(all - labels) + 1));
  local_find(rows, weight, &l);
  for (int n = 0; n < STEPS; n++)
    if (!step_solve(&l, rows->k + 1, step) || !weight_move(rows, &l, step, weight)) return;
}
