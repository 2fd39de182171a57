/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of dense work, for any vector width: tiles of products, solves of a few columns.
 *
 * Floor: device.  Included once by each dense_<variant>.c, which defines
 *   DENSE_TABLE, DENSE_NAME  the table and its name,
 *   LANES                    doubles a vector,
 *   COLUMNS                  columns of a tile; its rows are VECTORS vectors,
 *   lanes, floats            vectors of as many doubles and floats,
 *   fmadd(), convert()       a b + c, rounded once; floats to doubles.
 *
 * Lanes are rows of the result; a chain runs along the depth, in registers. */
#include <math.h>
#include <string.h>

#include "device/dense_inside.h"
#include "device/lanes.h"
#include "model/codes.h"

enum { VECTORS = 3 };

static void tile(idx depth, const real *a, const real *b, real *c, gidx stride)
{
  lanes acc[COLUMNS][VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) acc[j][v] = load(c + j * stride + v * LANES);
  for (idx k = 0; k < depth; k++, a += VECTORS * LANES, b += COLUMNS) {
    lanes x[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) x[v] = load(a + v * LANES);
#pragma GCC unroll 8
    for (int j = 0; j < COLUMNS; j++) {
      lanes y = splat(b[j]);
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) acc[j][v] = fmadd(x[v], y, acc[j][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < COLUMNS; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) store(c + j * stride + v * LANES, acc[j][v]);
}

/* One vector of rows of solve(). */
static inline void solve_rows(real *t, gidx stride, idx width, const real *l, gidx l_stride)
{
  lanes done[LEAF];
  for (idx j = 0; j < width; j++) {
    lanes acc = load(t + j * stride);
    for (idx k = 0; k < j; k++) acc = fmadd(-done[k], splat(l[j + k * l_stride]), acc);
    done[j] = acc / splat(l[j + j * l_stride]);
    store(t + j * stride, done[j]);
  }
}

static void solve(real *t, gidx stride, idx rows, idx width, const real *l, gidx l_stride)
{
  idx i = 0;
  for (; i + LANES <= rows; i += LANES) solve_rows(t + i, stride, width, l, l_stride);
  for (; i < rows; i++)
    for (idx j = 0; j < width; j++) {
      real acc = t[i + j * stride];
      for (idx k = 0; k < j; k++) acc = fma(-t[i + k * stride], l[j + k * l_stride], acc);
      t[i + j * stride] = acc / l[j + j * l_stride];
    }
}

static inline __attribute__((always_inline)) void
chains_of(idx depth, const real *a, const real *b, gidx b_stride, const int count, real *out)
{
  lanes acc[COLUMNS][VECTORS];
#pragma GCC unroll 8
  for (int j = 0; j < count; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) acc[j][v] = (lanes){0};
  for (idx k = 0; k < depth; k++, a += VECTORS * LANES, b += b_stride) {
#pragma GCC unroll 8
    for (int j = 0; j < count; j++)
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++)
        acc[j][v] = fmadd(load(a + v * LANES), splat(b[j]), acc[j][v]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < count; j++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) store(out + (j * VECTORS + v) * LANES, acc[j][v]);
}

static void chains(idx depth, const real *a, const real *b, gidx b_stride, idx count, real *out)
{
  for (; count >= 4; count -= 4, b += 4, out += 4 * VECTORS * LANES)
    chains_of(depth, a, b, b_stride, 4, out);
  if (count == 3) chains_of(depth, a, b, b_stride, 3, out);
  if (count == 2) chains_of(depth, a, b, b_stride, 2, out);
  if (count == 1) chains_of(depth, a, b, b_stride, 1, out);
}

static inline __attribute__((always_inline)) void update_of(const struct dense_update *u, idx i,
                                                            idx j, const int columns)
{
  lanes acc[4];
  const real *a = u->a + i, *b = u->b + j;
  real *c = u->c + i + j * u->c_stride;
#pragma GCC unroll 4
  for (int q = 0; q < columns; q++) acc[q] = load(c + q * u->c_stride);
  for (idx k = 0; k < u->depth; k++, a += u->a_stride, b += u->b_stride) {
    lanes x = -load(a);
#pragma GCC unroll 4
    for (int q = 0; q < columns; q++) acc[q] = fmadd(x, splat(b[q]), acc[q]);
  }
#pragma GCC unroll 4
  for (int q = 0; q < columns; q++) store(c + q * u->c_stride, acc[q]);
}

static void update(const struct dense_update *u)
{
  for (idx i = 0; i < u->rows; i += LANES) {
    idx j = 0;
    for (; j + 4 <= u->columns; j += 4) update_of(u, i, j, 4);
    for (; j < u->columns; j++) update_of(u, i, j, 1);
  }
}

static void residual(const float *x, const float *const *vector, const float *codes, idx m, idx p,
                     real *out)
{
  idx c = 0;
  for (; c + LANES <= p; c += LANES) {
    floats part;
    memcpy(&part, x + c, sizeof part);
    lanes acc = convert(part);
    for (idx j = 0; j < m; j++) {
      memcpy(&part, vector[j] + c, sizeof part);
      acc = fmadd(splat(-(real)codes[j]), convert(part), acc);
    }
    store(out + c, acc);
  }
  for (; c < p; c++) {
    out[c] = x[c];
    for (idx j = 0; j < m; j++) out[c] = fma(-(real)codes[j], (real)vector[j][c], out[c]);
  }
}

static void widen(const float *const *vector, idx m, idx p, real *packed)
{
  enum { BLOCK = 16 };
  for (idx c = 0; c < p; c += BLOCK)
    for (idx i = 0; i < m; i++) {
      const float *from = vector[i];
      for (idx b = c; b < p && b < c + BLOCK; b++) packed[(gidx)b * VECTORS * LANES + i] = from[b];
    }
}

static void corner(const struct dense_corner *c)
{
  for (idx i = 0; i < c->count; i++)
    c->out[i] = fma(c->ee[i / c->d * c->stride], c->t[i] * c->t_b, c->s[i]);
}

/* Row m of the factor for vector v; its pivot. */
static real factor_row(const real *g, idx big_m, real rho, const idx *kept, idx m, idx v, real *l)
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

static idx factor(const real *g, idx big_m, real rho, idx *kept, real *l, real *pivot)
{
  idx m = 0;
  for (idx v = 0; v < big_m; v++) {
    pivot[m] = factor_row(g, big_m, 0, kept, m, v, l);
    if (!(pivot[m] > DROP_TOLERANCE * g[(gidx)v * big_m + v] && isfinite(pivot[m]))) continue;
    l[m + m * (gidx)big_m] = sqrt(pivot[m]);
    kept[m++] = v;
  }
  if (!(rho > 0)) return m;
  for (idx i = 0; i < m; i++) {
    pivot[i] = factor_row(g, big_m, rho, kept, i, kept[i], l);
    if (!(pivot[i] > 0 && isfinite(pivot[i]))) return -1;
    l[i + i * (gidx)big_m] = sqrt(pivot[i]);
  }
  return m;
}

enum { SIDE = 8 / LANES };

static void apply(const real *a, idx width, const idx *border, const real *x, real *y)
{
  for (idx i = 0; i < width; i++, a += width) {
    real *to = y + 8 * (gidx)border[i];
    lanes acc[SIDE];
    for (int v = 0; v < SIDE; v++) acc[v] = load(to + v * LANES);
    for (idx j = 0; j < width; j++)
      for (int v = 0; v < SIDE; v++)
        acc[v] = fmadd(splat(a[j]), load(x + 8 * (gidx)border[j] + v * LANES), acc[v]);
    for (int v = 0; v < SIDE; v++) store(to + v * LANES, acc[v]);
  }
}

static void dots(idx n, const real *x, const real *y, real *out)
{
  lanes acc[SIDE] = {{0}};
  for (gidx i = 0; i < 8 * (gidx)n; i += 8)
    for (int v = 0; v < SIDE; v++)
      acc[v] = fmadd(load(x + i + v * LANES), load(y + i + v * LANES), acc[v]);
  for (int v = 0; v < SIDE; v++) store(out + v * LANES, acc[v]);
}

static void subtract(idx n, const real *s, const real *x, real *y)
{
  for (gidx i = 0; i < 8 * (gidx)n; i += 8)
    for (int v = 0; v < SIDE; v++)
      store(y + i + v * LANES,
            fmadd(-load(s + v * LANES), load(x + i + v * LANES), load(y + i + v * LANES)));
}

const struct dense_loops DENSE_TABLE = {.name = DENSE_NAME,
                                        .rows = VECTORS * LANES,
                                        .columns = COLUMNS,
                                        .tile = tile,
                                        .solve = solve,
                                        .chains = chains,
                                        .update = update,
                                        .residual = residual,
                                        .widen = widen,
                                        .corner = corner,
                                        .factor = factor,
                                        .apply = apply,
                                        .dots = dots,
                                        .subtract = subtract};
