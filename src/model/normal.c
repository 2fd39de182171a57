/* SPDX-License-Identifier: BSD-3-Clause
 * These are plain loops that follow the formulas. */
#include "model/normal.h"

#include <math.h>

void normal_add(const struct normal_rows *rows, idx k, real *gram, real *target)
{
  for (idx i = 0; i < rows->n; i++) {
    const idx *atoms = rows->atoms + (gidx)i * rows->s;
    const float *codes = rows->codes + (gidx)i * rows->s, *x = rows->x + (gidx)i * rows->p;
    for (idx j = 0; j < rows->s; j++) {
      real t = codes[j], *row = gram + (gidx)atoms[j] * k, *to = target + (gidx)atoms[j] * rows->p;
      if (t == 0) continue;
      for (idx l = 0; l < rows->s; l++) row[atoms[l]] = fma(t, (real)codes[l], row[atoms[l]]);
      for (idx c = 0; c < rows->p; c++) to[c] = fma(t, (real)x[c], to[c]);
    }
  }
}

void normal_decay(real beta, gidx count, real *values)
{
  for (gidx i = 0; i < count; i++) values[i] *= beta;
}

void normal_descend(const real *gram, const real *target, idx k, idx p, real *atoms)
{
  for (idx a = 0; a < k; a++) {
    const real *g = gram + (gidx)a * k;
    idx first = a / NORMAL_BLOCK * NORMAL_BLOCK;
    idx end = first + NORMAL_BLOCK < k ? first + NORMAL_BLOCK : k;
    if (!(g[a] > 0)) continue;
    for (idx c = 0; c < p; c++) {
      real acc = target[(gidx)a * p + c];
      for (idx b = 0; b < k; b++)
        if (b < first || b >= end) acc = fma(-g[b], atoms[(gidx)b * p + c], acc);
      for (idx b = first; b < end; b++)
        if (b != a) acc = fma(-g[b], atoms[(gidx)b * p + c], acc);
      atoms[(gidx)a * p + c] = acc / g[a];
    }
  }
}

void normal_energies(const struct normal_rows *rows, const real *atoms, idx begin, idx columns,
                     real *energy)
{
  for (idx i = 0; i < rows->n; i++)
    for (idx c = 0; c < columns; c++) {
      real r = rows->x[(gidx)i * rows->p + begin + c];
      for (gidx e = (gidx)i * rows->s; e < (gidx)(i + 1) * rows->s; e++)
        r = fma(-atoms[(gidx)rows->atoms[e] * columns + c], (real)rows->codes[e], r);
      energy[i] = fma(r, r, energy[i]);
    }
}
