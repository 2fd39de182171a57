/* SPDX-License-Identifier: BSD-3-Clause
 * Implicit QL with Wilkinson's shift.  Of the product of the rotations only the first row is
 * kept. */
#include "model/quadrature.h"

#include <math.h>

#include "base/status.h"

enum { MAX_SWEEPS = 60 };

/* The last row of the block that begins at row l: after it the off-diagonal entry is negligible. */
static idx block_end(const real *d, const real *e, idx l, idx m)
{
  idx i = l;
  for (; i + 1 < m; i++) {
    real scale = fabs(d[i]) + fabs(d[i + 1]);
    if (fabs(e[i]) <= 0x1p-53 * scale) break;
  }
  return i;
}

/* One QL sweep over rows l .. end; row[] is the first row of the rotations. */
static void ql_sweep(real *d, real *e, real *row, idx l, idx end)
{
  real g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1, p = 0;
  g = d[end] - d[l] + e[l] / (g + copysign(r, g));
  for (idx i = end - 1; i >= l; i--) {
    real f = s * e[i], b = c * e[i];
    r = hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[end] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    f = row[i + 1];
    row[i + 1] = s * row[i] + c * f;
    row[i] = c * row[i] - s * f;
  }
  d[l] -= p;
  e[l] = g;
  e[end] = 0;
}

int quadrature_make(real *d, real *e, idx m, real *weight)
{
  for (idx i = 0; i < m; i++) weight[i] = i == 0;
  for (idx l = 0; l < m; l++) {
    int sweeps = 0;
    for (idx end; (end = block_end(d, e, l, m)) != l; sweeps++) {
      CHECK(sweeps < MAX_SWEEPS, ERR_INTERNAL, "eigenvalue %d of %d does not converge", l, m);
      ql_sweep(d, e, weight, l, end);
    }
  }
  for (idx i = 0; i < m; i++) weight[i] *= weight[i];
  return OK;
}
