/* SPDX-License-Identifier: BSD-3-Clause
 * By sorting in place. */
#include "cli/bench_median.h"

#include <stdlib.h>

static int double_compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *values, int count)
{
  qsort(values, (size_t)count, sizeof *values, double_compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
