/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of dense matrices, for any vector width: tiles of products, solves of a few columns.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h and after it has defined
 *   DENSE_NAME     the name that reports print,
 *   DENSE_COLUMNS  columns of a tile; its rows are DENSE_VECTORS vectors.
 *
 * Lanes are rows of the result; a chain runs along the depth, in registers. */
#include <math.h>
#include <string.h>

#include "device/cpu/dense_loops.h"
#include "model/codes.h"

enum { DENSE_VECTORS = 3 };

static void dense_tile(idx depth, const real *a, const real *b, real *c, gidx stride)
{
  f64v acc[DENSE_COLUMNS][DENSE_VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < DENSE_COLUMNS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < DENSE_VECTORS; v++) acc[j][v] = f64_load(c + j * stride + v * F64_LANES);
  for (idx k = 0; k < depth; k++, a += DENSE_VECTORS * F64_LANES, b += DENSE_COLUMNS) {
    f64v x[DENSE_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < DENSE_VECTORS; v++) x[v] = f64_load(a + v * F64_LANES);
#pragma GCC unroll 8
    for (int j = 0; j < DENSE_COLUMNS; j++) {
      f64v y = f64_splat(b[j]);
#pragma GCC unroll 4
      for (int v = 0; v < DENSE_VECTORS; v++) acc[j][v] = f64_fma(x[v], y, acc[j][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < DENSE_COLUMNS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < DENSE_VECTORS; v++) f64_store(c + j * stride + v * F64_LANES, acc[j][v]);
}

/* solve() for one vector of rows. */
static inline void dense_solve_rows(real *t, gidx stride, idx width, const real *l, gidx l_stride)
{
  f64v done[DENSE_LEAF];
  for (idx j = 0; j < width; j++) {
    f64v acc = f64_load(t + j * stride);
    for (idx k = 0; k < j; k++) acc = f64_fma(-done[k], f64_splat(l[j + k * l_stride]), acc);
    done[j] = acc / f64_splat(l[j + j * l_stride]);
    f64_store(t + j * stride, done[j]);
  }
}

static void dense_solve(real *t, gidx stride, idx rows, idx width, const real *l, gidx l_stride)
{
  idx i = 0;
  for (; i + F64_LANES <= rows; i += F64_LANES) dense_solve_rows(t + i, stride, width, l, l_stride);
  for (; i < rows; i++)
    for (idx j = 0; j < width; j++) {
      real acc = t[i + j * stride];
      for (idx k = 0; k < j; k++) acc = fma(-t[i + k * stride], l[j + k * l_stride], acc);
      t[i + j * stride] = acc / l[j + j * l_stride];
    }
}

ALWAYS_INLINE void dense_chains_of(idx depth, const real *a, const real *b, gidx b_stride,
                                   const int count, real *out)
{
  f64v acc[DENSE_COLUMNS][DENSE_VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < count; j++)
#pragma GCC unroll 4
    for (int v = 0; v < DENSE_VECTORS; v++) acc[j][v] = (f64v){0};
  for (idx k = 0; k < depth; k++, a += DENSE_VECTORS * F64_LANES, b += b_stride) {
#pragma GCC unroll 8
    for (int j = 0; j < count; j++)
#pragma GCC unroll 4
      for (int v = 0; v < DENSE_VECTORS; v++)
        acc[j][v] = f64_fma(f64_load(a + v * F64_LANES), f64_splat(b[j]), acc[j][v]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < count; j++)
#pragma GCC unroll 4
    for (int v = 0; v < DENSE_VECTORS; v++)
      f64_store(out + (j * DENSE_VECTORS + v) * F64_LANES, acc[j][v]);
}

static void dense_chains(idx depth, const real *a, const real *b, gidx b_stride, idx count,
                         real *out)
{
  for (; count >= 4; count -= 4, b += 4, out += 4 * DENSE_VECTORS * F64_LANES)
    dense_chains_of(depth, a, b, b_stride, 4, out);
  if (count == 3) dense_chains_of(depth, a, b, b_stride, 3, out);
  if (count == 2) dense_chains_of(depth, a, b, b_stride, 2, out);
  if (count == 1) dense_chains_of(depth, a, b, b_stride, 1, out);
}

ALWAYS_INLINE void dense_update_of(const struct dense_update *u, idx i, idx j, const int columns)
{
  f64v acc[4];
  const real *a = u->a + i, *b = u->b + j;
  real *c = u->c + i + j * u->c_stride;
#pragma GCC unroll 4
  for (int q = 0; q < columns; q++) acc[q] = f64_load(c + q * u->c_stride);
  for (idx k = 0; k < u->depth; k++, a += u->a_stride, b += u->b_stride) {
    f64v x = -f64_load(a);
#pragma GCC unroll 4
    for (int q = 0; q < columns; q++) acc[q] = f64_fma(x, f64_splat(b[q]), acc[q]);
  }
#pragma GCC unroll 4
  for (int q = 0; q < columns; q++) f64_store(c + q * u->c_stride, acc[q]);
}

static void dense_update(const struct dense_update *u)
{
  for (idx i = 0; i < u->rows; i += F64_LANES) {
    idx j = 0;
    for (; j + 4 <= u->columns; j += 4) dense_update_of(u, i, j, 4);
    for (; j < u->columns; j++) dense_update_of(u, i, j, 1);
  }
}

static void dense_residual(const float *x, const float *const *vector, const float *codes, idx m,
                           idx p, real *out)
{
  idx c = 0;
  for (; c + F64_LANES <= p; c += F64_LANES) {
    f64v acc = f64_widen(x + c);
    for (idx j = 0; j < m; j++)
      acc = f64_fma(f64_splat(-(real)codes[j]), f64_widen(vector[j] + c), acc);
    f64_store(out + c, acc);
  }
  for (; c < p; c++) {
    out[c] = x[c];
    for (idx j = 0; j < m; j++) out[c] = fma(-(real)codes[j], (real)vector[j][c], out[c]);
  }
}

static void dense_widen(const float *const *vector, idx m, idx p, real *packed)
{
  enum { BLOCK = 16 };
  for (idx c = 0; c < p; c += BLOCK)
    for (idx i = 0; i < m; i++) {
      const float *from = vector[i];
      for (idx b = c; b < p && b < c + BLOCK; b++)
        packed[(gidx)b * DENSE_VECTORS * F64_LANES + i] = from[b];
    }
}

static void dense_corner(const struct dense_corner *c)
{
  for (idx i = 0; i < c->count; i++)
    c->out[i] = fma(c->ee[i / c->d * c->stride], c->t[i] * c->t_b, c->s[i]);
}

/* Row m of the factor, for vector v; returns its pivot. */
static real dense_factor_row(const real *g, idx big_m, real rho, const idx *kept, idx m, idx v,
                             real *l)
{
  for (idx i = 0; i <= m; i++) {
    real acc = g[(gidx)v * big_m + (i < m ? kept[i] : v)];
    if (i == m) acc += rho;
    for (idx k = 0; k < i; k++) acc = fma(-l[m + k * (gidx)big_m], l[i + k * (gidx)big_m], acc);
    if (i == m) return acc;
    l[m + i * (gidx)big_m] = acc / l[i + i * (gidx)big_m];
  }
  return 0;
}

static idx dense_factor(const real *g, idx big_m, real rho, idx *kept, real *l, real *pivot)
{
  idx m = 0;
  for (idx v = 0; v < big_m; v++) {
    pivot[m] = dense_factor_row(g, big_m, rho, kept, m, v, l);
    if (!(pivot[m] > DROP_TOLERANCE * g[(gidx)v * big_m + v] && isfinite(pivot[m]))) continue;
    l[m + m * (gidx)big_m] = sqrt(pivot[m]);
    kept[m++] = v;
  }
  return m;
}

enum { DENSE_SIDE = 8 / F64_LANES };

static void dense_apply(const real *a, idx width, const idx *border, const real *x, real *y)
{
  for (idx i = 0; i < width; i++, a += width) {
    real *to = y + 8 * (gidx)border[i];
    f64v acc[DENSE_SIDE];
    for (int v = 0; v < DENSE_SIDE; v++) acc[v] = f64_load(to + v * F64_LANES);
    for (idx j = 0; j < width; j++)
      for (int v = 0; v < DENSE_SIDE; v++)
        acc[v] =
            f64_fma(f64_splat(a[j]), f64_load(x + 8 * (gidx)border[j] + v * F64_LANES), acc[v]);
    for (int v = 0; v < DENSE_SIDE; v++) f64_store(to + v * F64_LANES, acc[v]);
  }
}

static void dense_dots(idx n, const real *x, const real *y, real *out)
{
  f64v acc[DENSE_SIDE] = {{0}};
  for (gidx i = 0; i < 8 * (gidx)n; i += 8)
    for (int v = 0; v < DENSE_SIDE; v++)
      acc[v] = f64_fma(f64_load(x + i + v * F64_LANES), f64_load(y + i + v * F64_LANES), acc[v]);
  for (int v = 0; v < DENSE_SIDE; v++) f64_store(out + v * F64_LANES, acc[v]);
}

static void dense_subtract(idx n, const real *s, const real *x, real *y)
{
  for (gidx i = 0; i < 8 * (gidx)n; i += 8)
    for (int v = 0; v < DENSE_SIDE; v++)
      f64_store(y + i + v * F64_LANES,
                f64_fma(-f64_load(s + v * F64_LANES), f64_load(x + i + v * F64_LANES),
                        f64_load(y + i + v * F64_LANES)));
}

static const struct dense_loops dense_table = {.name = DENSE_NAME,
                                               .rows = DENSE_VECTORS * F64_LANES,
                                               .columns = DENSE_COLUMNS,
                                               .tile = dense_tile,
                                               .solve = dense_solve,
                                               .chains = dense_chains,
                                               .update = dense_update,
                                               .residual = dense_residual,
                                               .widen = dense_widen,
                                               .corner = dense_corner,
                                               .factor = dense_factor,
                                               .apply = dense_apply,
                                               .dots = dense_dots,
                                               .subtract = dense_subtract};
