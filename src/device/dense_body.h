/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of dense work, for any vector width: tiles of products, solves of a few columns.
 *
 * Floor: device.  Included once by each dense_<variant>.c, which defines
 *   DENSE_TABLE, DENSE_NAME  the table and its name,
 *   LANES                    doubles a vector,
 *   COLUMNS                  columns of a tile; its rows are VECTORS vectors,
 *   lanes                    a vector of doubles,
 *   fmadd()                  a b + c, rounded once.
 *
 * Lanes are rows of the result; a chain runs along the depth, in registers. */
#include <math.h>
#include <string.h>

#include "device/dense_inside.h"

enum { VECTORS = 3 };

static inline lanes splat(real x)
{
  return x - (lanes){0};
}

static inline lanes load(const real *from)
{
  lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(real *to, lanes v)
{
  memcpy(to, &v, sizeof v);
}

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

const struct dense_loops DENSE_TABLE = {
    .name = DENSE_NAME, .rows = VECTORS * LANES, .columns = COLUMNS, .tile = tile, .solve = solve};
