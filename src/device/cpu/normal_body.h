/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the normal equations for any vector width; a chain never runs along a vector.
 *
 * Floor: device.  Included by units, behind vectors.h. */
#include <math.h>

#include "device/cpu/normal_loops.h"

enum { NORMAL_VECTORS = 8 };

static void normal_gram(const struct normal_rows *rows, const idx *entry, idx n, real *gram)
{
  for (idx i = 0; i < n; i++) {
    gidx at = (gidx)(entry[i] / rows->s) * rows->s;
    const idx *atoms = rows->atoms + at;
    const float *codes = rows->codes + at;
    real t = rows->codes[entry[i]];
    for (idx j = 0; j < rows->s; j++) gram[atoms[j]] = fma(t, (real)codes[j], gram[atoms[j]]);
  }
}

ALWAYS_INLINE void normal_target_part(const struct normal_rows *rows, const idx *entry, idx n,
                                      idx at, const int vectors, real *to)
{
  f64v acc[NORMAL_VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) acc[v] = f64_load(to + v * F64_LANES);
  for (idx i = 0; i < n; i++) {
    const float *x = rows->x + (gidx)(entry[i] / rows->s) * rows->p + at;
    f64v t = f64_splat(rows->codes[entry[i]]);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) acc[v] = f64_fma(t, f64_widen(x + v * F64_LANES), acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) f64_store(to + v * F64_LANES, acc[v]);
}

static void normal_target(const struct normal_rows *rows, const idx *entry, idx n, idx begin,
                          idx count, real *to)
{
  enum { WIDE = NORMAL_VECTORS * F64_LANES };
  idx c = 0;
  for (; c + WIDE <= count; c += WIDE)
    normal_target_part(rows, entry, n, begin + c, NORMAL_VECTORS, to + c);
  for (; c + F64_LANES <= count; c += F64_LANES)
    normal_target_part(rows, entry, n, begin + c, 1, to + c);
  for (; c < count; c++)
    for (idx i = 0; i < n; i++)
      to[c] = fma((real)rows->codes[entry[i]],
                  (real)rows->x[(gidx)(entry[i] / rows->s) * rows->p + begin + c], to[c]);
}

ALWAYS_INLINE void normal_descend_part(const real *g, idx n, idx at, const real *acc, gidx stride,
                                       const int vectors, real *atoms)
{
  f64v sum[NORMAL_VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) sum[v] = f64_load(acc + v * F64_LANES);
  for (idx b = 0; b < n; b++) {
    if (b == at) continue;
    f64v minus = f64_splat(-g[b]);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
      sum[v] = f64_fma(minus, f64_load(atoms + b * stride + v * F64_LANES), sum[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++)
    f64_store(atoms + at * stride + v * F64_LANES, sum[v] / f64_splat(g[at]));
}

static void normal_descend_atom(const real *g, idx n, idx at, const real *acc, idx count,
                                gidx stride, real *atoms)
{
  enum { WIDE = NORMAL_VECTORS * F64_LANES };
  idx c = 0;
  for (; c + WIDE <= count; c += WIDE)
    normal_descend_part(g, n, at, acc + c, stride, NORMAL_VECTORS, atoms + c);
  for (; c + F64_LANES <= count; c += F64_LANES)
    normal_descend_part(g, n, at, acc + c, stride, 1, atoms + c);
  for (; c < count; c++) {
    real sum = acc[c];
    for (idx b = 0; b < n; b++)
      if (b != at) sum = fma(-g[b], atoms[b * stride + c], sum);
    atoms[at * stride + c] = sum / g[at];
  }
}

static const struct normal_loops normal_table = {
    .gram = normal_gram, .target = normal_target, .descend = normal_descend_atom};
