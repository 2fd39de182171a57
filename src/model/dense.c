/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops that follow the formulas. */
#include "model/dense.h"

#include <math.h>

idx cholesky_reference(real *s, idx n, gidx stride, real *pivot)
{
  for (idx j = 0; j < n; j++) {
    real *column = s + j * stride;
    for (idx k = 0; k < j; k++)
      for (idx i = j; i < n; i++) column[i] = fma(-s[i + k * stride], s[j + k * stride], column[i]);
    pivot[j] = column[j];
    if (!(pivot[j] > 0 && isfinite(pivot[j]))) return j;
    column[j] = sqrt(pivot[j]);
    for (idx i = j + 1; i < n; i++) column[i] /= column[j];
  }
  return n;
}

void inverse_reference(real *l, idx n, gidx stride)
{
  for (idx i = 0; i < n; i++)
    for (idx j = 0; j <= i; j++) {
      /* Rows above row i are already rows of Z.  Row i still has entries of L from column j on. */
      real acc = i == j ? 1 : 0;
      for (idx k = j; k < i; k++) acc = fma(-l[i + k * stride], l[k + j * stride], acc);
      l[i + j * stride] = acc / l[i + i * stride];
    }
}

real inverse_entry(const real *z, idx n, gidx stride, idx a, idx b)
{
  real acc = 0;
  for (idx k = a > b ? a : b; k < n; k++) acc = fma(z[k + a * stride], z[k + b * stride], acc);
  return acc;
}

void cholesky_solve(const real *l, idx n, gidx stride, real *x)
{
  for (idx i = 0; i < n; i++) {
    for (idx k = 0; k < i; k++) x[i] = fma(-l[i + k * stride], x[k], x[i]);
    x[i] /= l[i + i * stride];
  }
  for (idx i = n - 1; i >= 0; i--) {
    for (idx k = n - 1; k > i; k--) x[i] = fma(-l[k + i * stride], x[k], x[i]);
    x[i] /= l[i + i * stride];
  }
}
