/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops that follow the formulas. */
#include "model/state.h"

#include <math.h>

real chain_dot(const real *a, const real *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma(a[c], b[c], acc);
  return acc;
}

void residual_row(const float *x, const real *const *frame, const real *codes, idx s, idx d, idx p,
                  real *r)
{
  for (idx c = 0; c < p; c++) r[c] = x[c];
  for (idx j = 0; j < s; j++)
    for (idx m = 0; m < d; m++)
      for (idx c = 0; c < p; c++)
        r[c] = fma(-frame[j][(gidx)m * p + c], codes[(gidx)j * d + m], r[c]);
}
