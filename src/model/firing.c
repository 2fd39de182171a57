/* SPDX-License-Identifier: BSD-3-Clause
 * The m largest codes are tried as the large codes, for every m at which the next code differs or
 * the codes end. */
#include "model/firing.h"

#include <stdlib.h>

static int code_compare(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x < y) - (x > y);
}

float firing_threshold(float *codes, gidx n)
{
  real sum = 0, most = 0;
  float best = 0;
  if (n > 1) qsort(codes, (size_t)n, sizeof *codes, code_compare);
  for (gidx m = 1; m <= n; m++) {
    real count = (real)m;
    sum += (real)codes[m - 1];
    if (m < n && codes[m] == codes[m - 1]) continue;
    real value = sum * sum * sum * sum * sum / (count * count * count);
    if (!(value > most)) continue;
    most = value;
    best = m < n ? codes[m] : 0;
  }
  return best;
}
