/* SPDX-License-Identifier: BSD-3-Clause
 * The formulas, computed as they are written.  kept[j] is 0 if vector j was dropped; every loop
 * skips dropped vectors. */
#include "model/codes.h"

#include <math.h>
#include <string.h>

/* Inner product in f64. */
static real gram(const float *a, const float *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma((real)a[c], (real)b[c], acc);
  return acc;
}

/* Compute column j of the Cholesky factor of the kept vectors' Gram matrix with rho on its
 * diagonal.  Returns 0, and drops vector j, if its pivot is at most min. */
static int factor_column(const real *g, real *l, const real *kept, idx big_m, idx j, real rho,
                         real min)
{
  for (idx i = j; i < big_m; i++) {
    real acc = g[(gidx)i * big_m + j];
    if (i == j) acc += rho;
    for (idx k = 0; k < j; k++)
      if (kept[k] != 0) acc = fma(-l[(gidx)i * big_m + k], l[(gidx)j * big_m + k], acc);
    if (i == j && !(acc > min)) return 0;
    l[(gidx)i * big_m + j] = i == j ? sqrt(acc) : acc / l[(gidx)j * big_m + j];
  }
  return 1;
}

/* codes[M] <- the solution by forward and back substitution with the kept vectors' factor; 0 for
 * the others.  y[M] is work space. */
static void substitute(const real *l, const real *kept, const real *b, idx big_m, real *y,
                       real *codes)
{
  gidx m = big_m;
  for (idx i = 0; i < big_m; i++) {
    codes[i] = 0;
    if (kept[i] == 0) continue;
    real acc = b[i];
    for (idx k = 0; k < i; k++)
      if (kept[k] != 0) acc = fma(-l[i * m + k], y[k], acc);
    y[i] = acc / l[i * m + i];
  }
  for (idx i = big_m - 1; i >= 0; i--) {
    if (kept[i] == 0) continue;
    real acc = y[i];
    for (idx k = big_m - 1; k > i; k--)
      if (kept[k] != 0) acc = fma(-l[k * m + i], codes[k], acc);
    codes[i] = acc / l[i * m + i];
  }
}

/* The normal equations of a row, and arrays for solving them.  A set of vectors is an array of
 * reals, 0 for vectors outside it. */
struct normal {
  idx m;
  real rho;
  real *g, *l; /* [M][M] */
  real *b, *y; /* [M] */
  real *kept;  /* [M] vectors that passed the rank test */
};

/* Numbers of work arrays of M reals: for struct normal, and for nonnegative codes. */
enum { NORMAL_VECTORS = 3, NONNEGATIVE_VECTORS = 5 };

/* Set up the equations (N.4); returns the rest of the work space. */
static real *normal_make(struct normal *n, const float *row, const float *const *vector, idx big_m,
                         idx p, real rho, real *work)
{
  gidx m = big_m;
  *n = (struct normal){.m = big_m, .rho = rho, .g = work, .l = work + m * m};
  n->b = n->l + m * m;
  n->y = n->b + m;
  n->kept = n->y + m;
  for (idx i = 0; i < big_m; i++) {
    for (idx j = 0; j <= i; j++) n->g[i * m + j] = n->g[j * m + i] = gram(vector[i], vector[j], p);
    n->b[i] = gram(vector[i], row, p);
  }
  return n->kept + m;
}

/* Factor with rho on the diagonal; vectors whose pivot is too small are dropped. */
static void rank_test(struct normal *n, real rho)
{
  for (idx j = 0; j < n->m; j++)
    n->kept[j] =
        factor_column(n->g, n->l, n->kept, n->m, j, rho, DROP_TOLERANCE * n->g[(gidx)j * n->m + j]);
}

gidx codes_work(idx big_m)
{
  return 2 * (gidx)big_m * big_m + (NORMAL_VECTORS + NONNEGATIVE_VECTORS) * (gidx)big_m;
}

void codes_reference(const float *row, const float *const *vector, idx big_m, idx p, real rho,
                     real *codes, real *work)
{
  struct normal n;
  normal_make(&n, row, vector, big_m, p, rho, work);
  rank_test(&n, rho);
  substitute(n.l, n.kept, n.b, big_m, n.y, codes);
}

/* z <- the solution on the vectors in the set, 0 elsewhere.  Vectors whose pivot is too small leave
 * the set. */
static void set_solve(const struct normal *n, real *in, real *z)
{
  for (idx j = 0; j < n->m; j++)
    if (in[j] != 0)
      in[j] =
          factor_column(n->g, n->l, in, n->m, j, n->rho, DROP_TOLERANCE * n->g[(gidx)j * n->m + j]);
  substitute(n->l, in, n->b, n->m, n->y, z);
}

/* The part of the way from x to z after which entry j is 0; z_j is not positive. */
static real set_reach(const real *x, const real *z, idx j)
{
  return x[j] > 0 ? x[j] / (x[j] - z[j]) : 0;
}

/* Go from x >= 0 towards the solution on the set until an entry becomes 0, and remove the vectors
 * of such entries from the set.  Repeat this until x is the solution on the set, and positive on
 * it.  Each repetition removes at least one vector. */
static void set_settle(const struct normal *n, real *in, real *x, real *z)
{
  for (;;) {
    real step = 1;
    int blocked = 0;
    set_solve(n, in, z);
    for (idx j = 0; j < n->m; j++) {
      if (in[j] == 0 || z[j] > 0) continue;
      blocked = 1;
      step = fmin(step, set_reach(x, z, j));
    }
    for (idx j = 0; j < n->m; j++) {
      if (in[j] != 0 && blocked && !(z[j] > 0) && !(set_reach(x, z, j) > step)) in[j] = 0;
      x[j] = in[j] == 0 ? 0 : blocked ? fmax(fma(step, z[j] - x[j], x[j]), 0) : z[j];
    }
    if (!blocked) return;
  }
}

/* Twice the difference between the objective at 0 and the objective at x, where x is the solution
 * on its set. */
static real set_gain(const struct normal *n, const real *x)
{
  real gain = 0;
  for (idx j = 0; j < n->m; j++)
    if (x[j] > 0) gain = fma(n->b[j], x[j], gain);
  return gain;
}

/* Of the vectors that are neither in the set nor refused: the vector whose code has the steepest
 * slope; -1: no slope exceeds SLOPE_TOLERANCE. */
static idx set_next(const struct normal *n, const real *in, const real *refused, const real *x)
{
  idx best = -1;
  real most = 0;
  for (idx j = 0; j < n->m; j++) {
    real slope = n->b[j], size = fabs(n->b[j]);
    if (in[j] != 0 || refused[j] != 0) continue;
    for (idx k = 0; k < n->m; k++) {
      if (in[k] == 0) continue;
      real g = n->g[(gidx)j * n->m + k];
      slope = fma(-g, x[k], slope);
      size = fma(fabs(g), x[k], size);
    }
    if (slope > SLOPE_TOLERANCE * size && slope > most) {
      most = slope;
      best = j;
    }
  }
  return best;
}

void codes_nonnegative_reference(const float *row, const float *const *vector, idx big_m, idx p,
                                 real rho, real *codes, real *work)
{
  codes_toward_reference(row, vector, big_m, p, rho, NULL, codes, work);
}

void codes_toward_reference(const float *row, const float *const *vector, idx big_m, idx p,
                            real rho, const real *toward, real *codes, real *work)
{
  struct normal n;
  gidx m = big_m;
  size_t bytes = (size_t)big_m * sizeof(real);
  real *in = normal_make(&n, row, vector, big_m, p, rho, work);
  real *refused = in + m, *try_in = refused + m, *x = try_in + m, *z = x + m, *try_x = codes;
  for (idx j = 0; j < m && toward; j++) n.b[j] = fma(rho, toward[j], n.b[j]);
  rank_test(&n, 0);
  memcpy(in, n.kept, bytes);
  memset(x, 0, bytes);
  memset(refused, 0, bytes);
  set_settle(&n, in, x, z);
  for (idx j; (j = set_next(&n, in, refused, x)) >= 0;) {
    memcpy(try_in, in, bytes);
    memcpy(try_x, x, bytes);
    try_in[j] = 1;
    set_settle(&n, try_in, try_x, z);
    refused[j] = 1;
    if (!(set_gain(&n, try_x) > set_gain(&n, x))) continue;
    memset(refused, 0, bytes);
    memcpy(in, try_in, bytes);
    memcpy(x, try_x, bytes);
  }
  memcpy(codes, x, bytes);
}

void residual_reference(const float *row, const float *const *vector, idx big_m, idx p,
                        const real *codes, float *out)
{
  for (idx c = 0; c < p; c++) {
    real acc = row[c];
    for (idx j = 0; j < big_m; j++) acc = fma(-codes[j], (real)vector[j][c], acc);
    out[c] = (float)acc;
  }
}

struct row_quality quality_reference(const float *row, const float *const *vector, idx m, idx d,
                                     idx p, const float *codes)
{
  struct row_quality q = {0};
  real dot = 0, row_norm = 0, fit_norm = 0;
  for (idx c = 0; c < p; c++) {
    real e = row[c], fit = 0;
    for (idx j = 0; j < m * d; j++) {
      e = fma(-(real)codes[j], (real)vector[j][c], e);
      fit = fma((real)codes[j], (real)vector[j][c], fit);
    }
    q.error = fma(e, e, q.error);
    dot = fma((real)row[c], fit, dot);
    row_norm = fma((real)row[c], (real)row[c], row_norm);
    fit_norm = fma(fit, fit, fit_norm);
  }
  real norms = sqrt(row_norm) * sqrt(fit_norm);
  q.cosine = norms > 0 ? dot / norms : 0;
  q.square = row_norm;
  for (idx a = 0; a < m; a++) {
    int any = 0;
    for (idx k = 0; k < d; k++) any |= codes[a * d + k] != 0;
    q.nonzero += any;
  }
  return q;
}

float code_summary(const float *block, idx d)
{
  if (d == 1) return block[0];
  real norm = 0;
  float largest = 0;
  for (idx m = 0; m < d; m++) {
    norm = fma((real)block[m], (real)block[m], norm);
    if (fabsf(block[m]) > fabsf(largest)) largest = block[m];
  }
  return (float)copysign(sqrt(norm), largest);
}
