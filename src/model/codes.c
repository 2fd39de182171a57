/* SPDX-License-Identifier: BSD-3-Clause
 * Straight from the formulas.  kept[j] is 0 for a dropped vector, which every loop leaves out. */
#include "model/codes.h"

#include <math.h>

/* Inner product in f64. */
static real gram(const float *a, const float *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma((real)a[c], (real)b[c], acc);
  return acc;
}

/* work holds G [M][M], L [M][M], y [M], then kept [M] as reals. */
gidx codes_work(idx big_m)
{
  return 2 * (gidx)big_m * big_m + 2 * (gidx)big_m;
}

/* Compute column j of the Cholesky factor of the kept vectors' Gram matrix, rho on its diagonal.
 * Returns 0 when vector j is dropped. */
static int factor_column(const real *g, real *l, const real *kept, idx big_m, idx j, real rho)
{
  for (idx i = j; i < big_m; i++) {
    real acc = g[(gidx)i * big_m + j];
    if (i == j) acc += rho;
    for (idx k = 0; k < j; k++)
      if (kept[k] != 0) acc = fma(-l[(gidx)i * big_m + k], l[(gidx)j * big_m + k], acc);
    if (i > j) {
      l[(gidx)i * big_m + j] = acc / l[(gidx)j * big_m + j];
    } else {
      real min = rho > 0 ? 0 : DROP_TOLERANCE * g[(gidx)j * big_m + j];
      if (!(acc > min)) return 0;
      l[(gidx)j * big_m + j] = sqrt(acc);
    }
  }
  return 1;
}

void codes_reference(const float *row, const float *const *vector, idx big_m, idx p, real rho,
                     real *codes, real *work)
{
  gidx m = big_m;
  real *g = work, *l = g + m * m, *y = l + m * m, *kept = y + m;
  for (idx i = 0; i < big_m; i++)
    for (idx j = 0; j <= i; j++) g[i * m + j] = g[j * m + i] = gram(vector[i], vector[j], p);
  for (idx j = 0; j < big_m; j++) kept[j] = factor_column(g, l, kept, big_m, j, 0);
  if (rho > 0)
    for (idx j = 0; j < big_m; j++)
      if (kept[j] != 0) factor_column(g, l, kept, big_m, j, rho);
  for (idx i = 0; i < big_m; i++) {
    codes[i] = 0;
    if (kept[i] == 0) continue;
    real acc = gram(vector[i], row, p);
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
