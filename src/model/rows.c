/* SPDX-License-Identifier: BSD-3-Clause
 * The loops are bound by memory; the compiler vectorises them across columns. */
#include "model/rows.h"

#include <math.h>

#include "base/status.h"

void rows_center(float *x, gidx n, idx p, const real *mean)
{
  if (!mean) return;
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) x[i * p + c] = (float)(x[i * p + c] - mean[c]);
}

/* x * 0 is 0 for finite x and NaN otherwise, and a sum with a NaN is NaN.  There are sixteen sums,
 * since each addition to a sum waits for the addition before it. */
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

/* The index of the first value that is not finite; n p: all are. */
static gidx finite_values(const float *x, gidx n, idx p)
{
  gidx i = 0, at;
  while (i < n && row_is_finite(x + i * p, p)) i++;
  for (at = i * p; at < n * p && isfinite(x[at]);) at++;
  return at;
}

int rows_are_finite(const float *x, gidx n, idx p)
{
  return finite_values(x, n, p) == n * p;
}

/* The text for a value that is not finite.  It may be a finite float64 in the file that is beyond
 * the range of float32. */
static const char *value_text(float x)
{
  return isnan(x) ? "nan" : x > 0 ? "inf, or beyond float32" : "-inf, or beyond float32";
}

int rows_check(const float *x, gidx n, idx p, gidx first, const char *name)
{
  gidx at = finite_values(x, n, p);
  CHECK(at == n * p, ERR_INPUT, "row %lld, column %d of '%s' is %s: leave such rows out",
        (long long)(first + at / p), (int)(at % p), name, value_text(x[at]));
  return OK;
}

int rows_source_check(const struct row_source *rows, const float *x, gidx first, gidx n)
{
  gidx at = finite_values(x, n, rows->p), row = first + at / rows->p, local = row;
  if (at == n * rows->p || !rows->place) return rows_check(x, n, rows->p, first, rows->name);
  const char *part = rows->place(rows->self, &local);
  FAIL(ERR_INPUT, "row %lld, column %d is %s: it is row %lld of '%s', leave such rows out",
       (long long)row, (int)(at % rows->p), value_text(x[at]), (long long)local, part);
}

void rows_shift(const float *x, idx n, idx p, real *shift)
{
  for (idx c = 0; c < p; c++) shift[c] = 0;
  for (gidx i = 0; i < n; i++)
    for (idx c = 0; c < p; c++) shift[c] += x[i * p + c];
  for (idx c = 0; c < p && n > 0; c++) shift[c] /= n;
}
