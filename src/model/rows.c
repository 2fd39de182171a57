/* SPDX-License-Identifier: BSD-3-Clause
 * Row by row, column by column: memory-bound loops that the compiler vectorises across columns. */
#include "model/rows.h"

#include <math.h>

#include "base/status.h"

void rows_center(float *x, gidx n, idx p, const real *mean)
{
  if (!mean) return;
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) x[i * p + c] = (float)(x[i * p + c] - mean[c]);
}

int rows_check(const float *x, gidx n, idx p, gidx first, const char *name)
{
  for (gidx i = 0; i < n; i++) {
    float worst = 0; /* x * 0 is 0 for finite x and NaN otherwise; NaN stays */
    for (idx c = 0; c < p; c++) worst += x[i * p + c] * 0.0f;
    if (worst == 0) continue;
    for (idx c = 0; c < p; c++)
      CHECK(isfinite(x[i * p + c]), ERR_INPUT, "row %lld, column %d of '%s' is %g",
            (long long)(first + i), c, name, (double)x[i * p + c]);
  }
  return OK;
}

void rows_shift(const float *x, idx n, idx p, real *shift)
{
  for (idx c = 0; c < p; c++) shift[c] = 0;
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) shift[c] += x[i * p + c];
  for (idx c = 0; c < p && n > 0; c++) shift[c] /= n;
}
