/* SPDX-License-Identifier: BSD-3-Clause
 * Finds out why an attempt failed: looks at the system again, entry by entry and row by row. */
#include "device/cpu/arrow_failure.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

#define val double
#define VAL_FMA(a, b, c) fma(a, b, c)
#define VAL_SQRT(a) sqrt(a)
#include "device/cpu/arrow_row.h"

/* The index of the first of `count` entries that is not finite, or -1.  In square blocks of n x n,
 * entries above the diagonal do not count. */
static gidx entry_find(const real *a, gidx count, gidx n, int is_square)
{
  for (gidx i = 0; i < count; i++)
    if (!isfinite(a[i]) && !(is_square && i % n < i / n % n)) return i;
  return -1;
}

/* The index of the first entry of a system that is not finite, or -1.  The entries of h, b, g, c
 * and g_b are numbered in this order. */
static gidx not_finite(const struct arrow_system *s)
{
  gidx n = s->n, d = s->d, k = s->k, base = 0;
  const struct {
    const real *values;
    gidx count, width;
    int is_square;
  } parts[] = {{s->h, n * d * d, d, 1},
               {s->b, n * d * k, 1, 0},
               {s->g, n * d, 1, 0},
               {s->c, k * k, k, 1},
               {s->g_b, k, 1, 0}};
  for (int i = 0; i < LENGTH(parts); base += parts[i++].count) {
    gidx at = entry_find(parts[i].values, parts[i].count, parts[i].width, parts[i].is_square);
    if (at >= 0) return base + at;
  }
  return -1;
}

static int is_good(real pivot)
{
  return pivot > 0 && pivot <= DBL_MAX;
}

/* at: index of the row, pivot or entry.  bump: an addition to the ridge (N.14), with which the
 * system might succeed. */
static void fail(struct arrow_outcome *out, int status, gidx at, real bump)
{
  out->status = status;
  out->failed_at = at;
  out->suggested_bump = isfinite(bump) ? bump : nan_canonical();
}

void attempt_fail_row(const struct attempt *a)
{
  const struct arrow_system *s = &a->item->system;
  real block[ARROW_MAX_D * ARROW_MAX_D], l[ARROW_MAX_D * (ARROW_MAX_D + 1) / 2];
  real pivot[ARROW_MAX_D];
  idx d = s->d;
  for (gidx row = 0; row < s->n; row++) {
    memcpy(block, s->h + row * d * d, (size_t)(d * d) * sizeof *block);
    for (idx j = 0; j < d; j++) {
      block[j * d + j] += a->ridge_t;
      for (idx i = j; i < d; i++) l[ARROW_AT(d, i, j)] = block[j * d + i];
    }
    arrow_row_factor(d, l, pivot);
    for (idx j = 0; j < d; j++)
      if (!is_good(pivot[j])) {
        fail(&a->item->outcome, ARROW_ROW_NOT_PD, row, arrow_bump_row(block, d, ridges_units(s).t));
        return;
      }
  }
}

void attempt_fail_border(const struct attempt *a, idx at)
{
  const struct arrow_system *s = &a->item->system;
  fail(&a->item->outcome, ARROW_SCHUR_NOT_PD, at,
       arrow_bump_border(a->workers->schur, stride_of(s->k), s->k, ridges_units(s).b));
}

int attempt_fail_entry(const struct attempt *a)
{
  gidx at = not_finite(&a->item->system);
  if (at >= 0) fail(&a->item->outcome, ARROW_NOT_FINITE, at, 0);
  return at >= 0;
}
