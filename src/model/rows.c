/* SPDX-License-Identifier: BSD-3-Clause
 * The loops are bound by memory, and the compiler vectorises them across columns. */
#include "model/rows.h"

#include <math.h>

#include "base/status.h"

void rows_center(float *x, gidx n, idx p, const real *mean)
{
  if (!mean) return;
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) x[i * p + c] = (float)(x[i * p + c] - mean[c]);
}

/* x * 0 is 0 for finite x and NaN otherwise, and a sum that is NaN stays NaN.  There are several
 * sums because each addition waits for the one before. */
static int row_is_finite(const float *x, idx p)
{
  float worst[16] = {0}, sum = 0;
  idx c = 0;
  for (; c + LENGTH(worst) <= p; c += LENGTH(worst))
    for (idx j = 0; j < LENGTH(worst); j++) worst[j] += x[c + j] * 0.0f;
  for (; c < p; c++) sum += x[c] * 0.0f;
  for (idx j = 0; j < LENGTH(worst); j++) sum += worst[j];
  return sum == 0;
}

int rows_check(const float *x, gidx n, idx p, gidx first, const char *name)
{
  for (gidx i = 0; i < n; i++) {
    if (row_is_finite(x + i * p, p)) continue;
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
