/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the codes, for any vector width: Gram entries, factor, back substitution (N.4, N.5),
 * residual (N.3r) and quality of a row.
 *
 * Floor: device.  Included once by each codes_<variant>.c, which defines
 *   CODES_TABLE              the table's name,
 *   LANES                    doubles a vector,
 *   lanes, floats            vectors of as many doubles and floats,
 *   fmadd(), convert()       a b + c, rounded once; floats to doubles (gcc's own conversion takes
 *                            the vector to pieces).
 *
 * A chain never runs along a vector: lanes are rows of the factor, or columns of the data. */
#include <math.h>
#include <string.h>

#include "device/cpu.h"
#include "device/lanes.h"

static inline lanes widen(const float *from)
{
  floats v;
  memcpy(&v, from, sizeof v);
  return convert(v);
}

/* Eight floats of eight vectors, turned: out[c][8]. */
static inline void pack_square(const float *const *vector, idx c, real *out)
{
  v8 a[8], b[8];
#pragma GCC unroll 16
  for (int i = 0; i < 8; i++) memcpy(&a[i], vector[i] + c, sizeof a[i]);
#pragma GCC unroll 16
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 8; i += 4) {
#pragma GCC unroll 16
    for (int k = 0; k < 2; k++) {
      a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * k + 1] =
          __builtin_shufflevector(b[i + k], b[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; i++) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 8; i++) {
    for (int k = 0; k < 8; k += LANES) {
      floats part;
      memcpy(&part, (const char *)&b[i] + k * (int)sizeof(float), sizeof part);
      store(out + 8 * i + k, convert(part));
    }
  }
}

/* out[n][8] <- columns c .. c + n - 1 of eight vectors. */
static void pack(const float *const *vector, idx c, idx n, real *out)
{
  idx i = 0;
  for (; i + 8 <= n; i += 8) pack_square(vector, c + i, out + 8 * i);
  for (; i < n; i++)
    for (int k = 0; k < 8; k++) out[8 * i + k] = vector[k][c + i];
}

/* g[k][0..7] += over n columns, of vector k of block `left` and lanes of block `right`. */
enum { TILE_VECTORS = GRAM_BLOCK / LANES, TILE_ROWS = 8 / TILE_VECTORS };
static void gram_tile(const real *left, const real *right, idx n, real *g)
{
  for (int k0 = 0; k0 < GRAM_BLOCK; k0 += TILE_ROWS, g += TILE_ROWS * CHUNK) {
    lanes sum[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int k = 0; k < TILE_ROWS; k++) {
#pragma GCC unroll 16
      for (int v = 0; v < TILE_VECTORS; v++) sum[k][v] = load(g + k * CHUNK + v * LANES);
    }
    for (idx c = 0; c < n; c++) {
#pragma GCC unroll 16
      for (int v = 0; v < TILE_VECTORS; v++) {
        lanes r = load(right + 8 * c + v * LANES);
#pragma GCC unroll 16
        for (int k = 0; k < TILE_ROWS; k++)
          sum[k][v] = fmadd(splat(left[8 * c + k0 + k]), r, sum[k][v]);
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < TILE_ROWS; k++) {
#pragma GCC unroll 16
      for (int v = 0; v < TILE_VECTORS; v++) store(g + k * CHUNK + v * LANES, sum[k][v]);
    }
  }
}

/* b[CHUNK] += over n columns, of the row and the four blocks of the chunk. */
static void gram_row(const float *row, const real *blocks, idx n, real *b)
{
  lanes sum[CHUNK / LANES];
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++) sum[v] = load(b + v * LANES);
  for (idx c = 0; c < n; c++) {
    lanes x = splat(row[c]);
#pragma GCC unroll 16
    for (int v = 0; v < CHUNK / LANES; v++) {
      const real *block = blocks + v * LANES / 8 * (8 * GRAM_COLUMNS);
      sum[v] = fmadd(load(block + 8 * c + v * LANES % 8), x, sum[v]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++) store(b + v * LANES, sum[v]);
}

static void gram(const struct gram_job *j)
{
  const idx block = 8 * GRAM_COLUMNS;
  memset(j->g, 0, (size_t)j->blocks * GRAM_BLOCK * CHUNK * sizeof(real));
  memset(j->b, 0, CHUNK * sizeof(real));
  for (idx c = 0; c < j->p; c += GRAM_COLUMNS) {
    idx n = j->p - c < GRAM_COLUMNS ? j->p - c : GRAM_COLUMNS;
    for (idx k = 0; k < j->blocks; k++) pack(j->vector + 8 * k, c, n, j->pack + k * block);
    for (idx i = j->first; i < j->blocks; i++)
      for (idx k = 0; k <= i; k++)
        gram_tile(j->pack + k * block, j->pack + i * block, n,
                  j->g + k * GRAM_BLOCK * CHUNK + (i - j->first) * GRAM_BLOCK);
    gram_row(j->row + c, j->pack + j->first * block, n, j->b);
  }
}

static inline gidx row_start(idx i)
{
  return (gidx)i * (i + 1) / 2;
}

/* Where vector k stands in g: the vectors before the chunk are padded to whole blocks. */
static inline real *chunk_column(const struct factor_job *f, idx k)
{
  idx padded = (f->old + GRAM_BLOCK - 1) / GRAM_BLOCK * GRAM_BLOCK;
  return f->a + (gidx)(k < f->old ? k : k - f->old + padded) * CHUNK;
}

/* Column j of the chunk's rows, before the division: chains over the kept columns before it. */
static void column_reduce(const struct factor_job *f, idx j)
{
  const real *l = f->l + row_start(j);
  real *a = chunk_column(f, j);
  lanes sum[CHUNK / LANES];
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++) sum[v] = load(a + v * LANES);
  for (idx k = 0; k < j; k++) {
    if (!f->kept[k]) continue;
    const real *column = chunk_column(f, k);
    lanes factor = splat(-l[k]);
#pragma GCC unroll 16
    for (int v = 0; v < CHUNK / LANES; v++)
      sum[v] = fmadd(load(column + v * LANES), factor, sum[v]);
  }
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++) store(a + v * LANES, sum[v]);
}

/* Divide column j by its diagonal, go on with the forward substitution, put the column in l. */
static void column_finish(const struct factor_job *f, idx j, real diagonal)
{
  real *a = chunk_column(f, j);
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++) store(a + v * LANES, load(a + v * LANES) / diagonal);
  for (idx i = j < f->old ? 0 : j - f->old; i < f->count; i++)
    f->l[row_start(f->old + i) + j] = a[i];
  if (j >= f->old) f->l[row_start(j) + j] = diagonal;
  if (!f->y) return;
  if (j >= f->old) f->y[j] = f->b[j - f->old] / diagonal;
  lanes y = splat(-f->y[j]);
#pragma GCC unroll 16
  for (int v = 0; v < CHUNK / LANES; v++)
    store(f->b + v * LANES, fmadd(load(a + v * LANES), y, load(f->b + v * LANES)));
}

/* A dropped vector's column is never used in a chain; zeros keep back() free of tests. */
static void column_drop(const struct factor_job *f, idx j)
{
  for (idx i = j < f->old ? 0 : j - f->old; i < f->count; i++) f->l[row_start(f->old + i) + j] = 0;
  if (f->y && j >= f->old) f->y[j] = 0;
}

/* Reduce column j of the chunk itself; whether its vector is kept. */
static int column_keep(const struct factor_job *f, idx j)
{
  real *diagonal = chunk_column(f, j) + (j - f->old), least = DROP_TOLERANCE * *diagonal;
  if (!f->test && !f->kept[j]) return 0;
  *diagonal += f->rho;
  column_reduce(f, j);
  if (f->test) f->kept[j] = *diagonal > least;
  return f->kept[j];
}

static void factor(const struct factor_job *f)
{
  for (idx j = 0; j < f->old; j++) {
    if (f->kept[j]) {
      column_reduce(f, j);
      column_finish(f, j, f->l[row_start(j) + j]);
    } else {
      column_drop(f, j);
    }
  }
  for (idx j = f->old; j < f->old + f->count; j++) {
    if (column_keep(f, j)) {
      column_finish(f, j, sqrt(chunk_column(f, j)[j - f->old]));
    } else {
      column_drop(f, j);
    }
  }
}

/* Chains in descending order, of all codes at once: reads up to LANES - 1 reals past a row of l. */
static void back(const real *l, const real *y, const idx *kept, idx m, real *codes, real *work)
{
  memcpy(work, y, (size_t)m * sizeof(real));
  for (idx k = m - 1; k >= 0; k--) {
    const real *row = l + row_start(k);
    codes[k] = 0;
    if (!kept[k]) continue;
    codes[k] = work[k] / row[k];
    lanes c = splat(-codes[k]);
    for (idx i = 0; i < k; i += LANES) store(work + i, fmadd(load(row + i), c, load(work + i)));
  }
}

enum { SPAN = 8 * LANES };

static void residual(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                     float *out)
{
  idx c = 0;
  for (; c + SPAN <= p; c += SPAN) {
    lanes sum[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) sum[v] = widen(row + c + v * LANES);
    for (idx j = 0; j < m; j++) {
      lanes code = splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++) sum[v] = fmadd(widen(vector[j] + c + v * LANES), code, sum[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) {
      floats rounded = __builtin_convertvector(sum[v], floats);
      memcpy(out + c + v * LANES, &rounded, sizeof rounded);
    }
  }
  for (; c < p; c++) {
    real sum = row[c];
    for (idx j = 0; j < m; j++) sum = fma(-codes[j], (real)vector[j][c], sum);
    out[c] = (float)sum;
  }
}

/* Error and description of the row, column by column. */
static void describe(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                     real *error, real *fit)
{
  idx c = 0;
  for (; c + 4 * LANES <= p; c += 4 * LANES) {
    lanes e[4], f[4];
#pragma GCC unroll 16
    for (int v = 0; v < 4; v++) {
      e[v] = widen(row + c + v * LANES);
      f[v] = splat(0);
    }
    for (idx j = 0; j < m; j++) {
      lanes code = splat(codes[j]), negative = splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 4; v++) {
        lanes d = widen(vector[j] + c + v * LANES);
        e[v] = fmadd(negative, d, e[v]);
        f[v] = fmadd(code, d, f[v]);
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < 4; v++) {
      store(error + c + v * LANES, e[v]);
      store(fit + c + v * LANES, f[v]);
    }
  }
  for (; c < p; c++) {
    real e = row[c], f = 0;
    for (idx j = 0; j < m; j++) {
      e = fma(-codes[j], (real)vector[j][c], e);
      f = fma(codes[j], (real)vector[j][c], f);
    }
    error[c] = e;
    fit[c] = f;
  }
}

static void quality(const float *row, const float *const *vector, idx m, idx p, const real *codes,
                    real *work, struct row_quality *q)
{
  const real *error = work, *fit = work + p;
  real sum = 0, dot = 0, row_norm = 0, fit_norm = 0;
  describe(row, vector, m, p, codes, work, work + p);
  for (idx c = 0; c < p; c++) {
    sum = fma(error[c], error[c], sum);
    dot = fma((real)row[c], fit[c], dot);
    row_norm = fma((real)row[c], (real)row[c], row_norm);
    fit_norm = fma(fit[c], fit[c], fit_norm);
  }
  real norms = sqrt(row_norm) * sqrt(fit_norm);
  q->error = sum;
  q->cosine = norms > 0 ? dot / norms : 0;
}

const struct codes_loops CODES_TABLE = {
    .gram = gram,
    .factor = factor,
    .back = back,
    .residual = residual,
    .quality = quality,
};
