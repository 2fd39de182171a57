/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the normal equations for any vector width.  No chain crosses lanes.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h. */
#include <math.h>

#include "device/cpu/conjugate_body.h"
#include "device/cpu/normal_loops.h"

enum { NORMAL_VECTORS = 8, ENERGY_ROWS_AT_ONCE = 8 };

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

/* r[..] <- some columns of the residual of a row; d points at these columns of atom 0. */
ALWAYS_INLINE void normal_residual_part(const idx *slots, const float *codes, idx s, const float *x,
                                        const real *d, gidx stride, const int vectors, real *r)
{
  f64v acc[NORMAL_VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) acc[v] = f64_widen(x + v * F64_LANES);
  for (idx j = 0; j < s; j++) {
    f64v minus = f64_splat(-(real)codes[j]);
    const real *atom = d + slots[j] * stride;
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
      acc[v] = f64_fma(f64_load(atom + v * F64_LANES), minus, acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) f64_store(r + v * F64_LANES, acc[v]);
}

/* r[count] <- columns begin .. begin + count - 1 of the residual of row i; atoms points at these
 * columns of atom 0. */
static void normal_residual(const struct normal_rows *rows, idx i, idx begin, idx count,
                            const real *atoms, gidx stride, real *r)
{
  enum { WIDE = NORMAL_VECTORS * F64_LANES };
  const idx *slots = rows->atoms + (gidx)i * rows->s;
  const float *codes = rows->codes + (gidx)i * rows->s, *x = rows->x + (gidx)i * rows->p + begin;
  idx c = 0;
  for (; c + WIDE <= count; c += WIDE)
    normal_residual_part(slots, codes, rows->s, x + c, atoms + c, stride, NORMAL_VECTORS, r + c);
  for (; c + F64_LANES <= count; c += F64_LANES)
    normal_residual_part(slots, codes, rows->s, x + c, atoms + c, stride, 1, r + c);
  for (; c < count; c++) {
    r[c] = x[c];
    for (idx j = 0; j < rows->s; j++)
      r[c] = fma(-atoms[slots[j] * stride + c], (real)codes[j], r[c]);
  }
}

/* n rows at a time: their chains are independent, so none waits for another. */
ALWAYS_INLINE void normal_energies_few(const struct normal_rows *rows, idx first, const int n,
                                       const real *atoms, idx begin, idx columns, real *energy)
{
  enum { PART = 64 };
  real r[ENERGY_ROWS_AT_ONCE][PART], e[ENERGY_ROWS_AT_ONCE];
  for (int i = 0; i < n; i++) e[i] = energy[first + i];
  for (idx at = 0; at < columns; at += PART) {
    idx count = columns - at < PART ? columns - at : PART;
    for (int i = 0; i < n; i++)
      normal_residual(rows, first + i, begin + at, count, atoms + at, columns, r[i]);
    for (idx c = 0; c < count; c++)
#pragma GCC unroll 8
      for (int i = 0; i < n; i++) e[i] = fma(r[i][c], r[i][c], e[i]);
  }
  for (int i = 0; i < n; i++) energy[first + i] = e[i];
}

static void normal_energies_rows(const struct normal_rows *rows, const real *atoms, idx begin,
                                 idx columns, real *energy)
{
  enum { N = ENERGY_ROWS_AT_ONCE };
  idx i = 0;
  for (; i + N <= rows->n; i += N) normal_energies_few(rows, i, N, atoms, begin, columns, energy);
  for (; i < rows->n; i++) normal_energies_few(rows, i, 1, atoms, begin, columns, energy);
}

static const struct normal_loops normal_table = {.gram = normal_gram,
                                                 .target = normal_target,
                                                 .descend = normal_descend_atom,
                                                 .energies = normal_energies_rows,
                                                 .conjugate = &conjugate_table};
