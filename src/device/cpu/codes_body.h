/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the codes, for any vector width: Gram entries, factor, back substitution (N.4, N.5),
 * residual (N.3r) and quality of a row.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h.
 *
 * Lanes are rows of the factor, or columns of the data.  No chain crosses lanes. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

typedef float f32x8 __attribute__((vector_size(32)));

/* out[8][8] <- eight columns of eight vectors, column by column. */
static inline void codes_pack_square(const float *const *vector, idx c, real *out)
{
  f32x8 a[8], b[8];
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
    for (int k = 0; k < 8; k += F64_LANES) {
      f32h part;
      memcpy(&part, (const char *)&b[i] + k * (int)sizeof(float), sizeof part);
      f64_store(out + 8 * i + k, f64_from_f32(part));
    }
  }
}

/* out[n][8] <- columns c .. c + n - 1 of eight vectors, column by column. */
static void codes_pack(const float *const *vector, idx c, idx n, real *out)
{
  idx i = 0;
  for (; i + 8 <= n; i += 8) codes_pack_square(vector, c + i, out + 8 * i);
  for (; i < n; i++)
    for (int k = 0; k < 8; k++) out[8 * i + k] = vector[k][c + i];
}

/* g[k][0..7] += products over n columns of vector k of block `left` with each vector of block
 * `right`, one vector of `right` per lane. */
enum { CODES_TILE_VECTORS = GRAM_BLOCK / F64_LANES, CODES_TILE_ROWS = 8 / CODES_TILE_VECTORS };
static void codes_gram_tile(const real *left, const real *right, idx n, real *g)
{
  for (int k0 = 0; k0 < GRAM_BLOCK; k0 += CODES_TILE_ROWS, g += CODES_TILE_ROWS * CODES_CHUNK) {
    f64v sum[CODES_TILE_ROWS][CODES_TILE_VECTORS];
#pragma GCC unroll 16
    for (int k = 0; k < CODES_TILE_ROWS; k++) {
#pragma GCC unroll 16
      for (int v = 0; v < CODES_TILE_VECTORS; v++)
        sum[k][v] = f64_load(g + k * CODES_CHUNK + v * F64_LANES);
    }
    for (idx c = 0; c < n; c++) {
#pragma GCC unroll 16
      for (int v = 0; v < CODES_TILE_VECTORS; v++) {
        f64v r = f64_load(right + 8 * c + v * F64_LANES);
#pragma GCC unroll 16
        for (int k = 0; k < CODES_TILE_ROWS; k++)
          sum[k][v] = f64_fma(f64_splat(left[8 * c + k0 + k]), r, sum[k][v]);
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < CODES_TILE_ROWS; k++) {
#pragma GCC unroll 16
      for (int v = 0; v < CODES_TILE_VECTORS; v++)
        f64_store(g + k * CODES_CHUNK + v * F64_LANES, sum[k][v]);
    }
  }
}

/* b[CODES_CHUNK] += products over n columns of the row with the vectors of the chunk's four
 * blocks. */
static void codes_gram_row(const float *row, const real *blocks, idx n, real *b)
{
  f64v sum[CODES_CHUNK / F64_LANES];
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++) sum[v] = f64_load(b + v * F64_LANES);
  for (idx c = 0; c < n; c++) {
    f64v x = f64_splat(row[c]);
#pragma GCC unroll 16
    for (int v = 0; v < CODES_CHUNK / F64_LANES; v++) {
      const real *block = blocks + v * F64_LANES / 8 * (8 * GRAM_COLUMNS);
      sum[v] = f64_fma(f64_load(block + 8 * c + v * F64_LANES % 8), x, sum[v]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++) f64_store(b + v * F64_LANES, sum[v]);
}

static void codes_gram(const struct gram_job *j)
{
  const idx block = 8 * GRAM_COLUMNS;
  memset(j->g, 0, (size_t)j->blocks * GRAM_BLOCK * CODES_CHUNK * sizeof(real));
  memset(j->b, 0, CODES_CHUNK * sizeof(real));
  for (idx c = 0; c < j->p; c += GRAM_COLUMNS) {
    idx n = j->p - c < GRAM_COLUMNS ? j->p - c : GRAM_COLUMNS;
    for (idx k = 0; k < j->blocks; k++) codes_pack(j->vector + 8 * k, c, n, j->pack + k * block);
    for (idx i = j->first; i < j->blocks; i++)
      for (idx k = 0; k <= i; k++)
        codes_gram_tile(j->pack + k * block, j->pack + i * block, n,
                        j->g + k * GRAM_BLOCK * CODES_CHUNK + (i - j->first) * GRAM_BLOCK);
    codes_gram_row(j->row + c, j->pack + j->first * block, n, j->b);
  }
}

static inline gidx codes_row_start(idx i)
{
  return (gidx)i * (i + 1) / 2;
}

/* The column of g that belongs to vector k.  In g, the vectors before the chunk are padded to whole
 * blocks. */
static inline real *codes_chunk_column(const struct factor_job *f, idx k)
{
  idx padded = (f->old + GRAM_BLOCK - 1) / GRAM_BLOCK * GRAM_BLOCK;
  return f->a + (gidx)(k < f->old ? k : k - f->old + padded) * CODES_CHUNK;
}

/* Continue the chains of column j in the chunk's rows over the kept columns k < j.  The division
 * follows in codes_column_finish(). */
static void codes_column_reduce(const struct factor_job *f, idx j)
{
  const real *l = f->l + codes_row_start(j);
  real *a = codes_chunk_column(f, j);
  f64v sum[CODES_CHUNK / F64_LANES];
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++) sum[v] = f64_load(a + v * F64_LANES);
  for (idx k = 0; k < j; k++) {
    if (!f->kept[k]) continue;
    const real *column = codes_chunk_column(f, k);
    f64v factor = f64_splat(-l[k]);
#pragma GCC unroll 16
    for (int v = 0; v < CODES_CHUNK / F64_LANES; v++)
      sum[v] = f64_fma(f64_load(column + v * F64_LANES), factor, sum[v]);
  }
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++) f64_store(a + v * F64_LANES, sum[v]);
}

/* Divide column j by its diagonal, continue the forward substitution, and store the column in l. */
static void codes_column_finish(const struct factor_job *f, idx j, real diagonal)
{
  real *a = codes_chunk_column(f, j);
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++)
    f64_store(a + v * F64_LANES, f64_load(a + v * F64_LANES) / diagonal);
  for (idx i = j < f->old ? 0 : j - f->old; i < f->count; i++)
    f->l[codes_row_start(f->old + i) + j] = a[i];
  if (j >= f->old) f->l[codes_row_start(j) + j] = diagonal;
  if (!f->y) return;
  if (j >= f->old) f->y[j] = f->b[j - f->old] / diagonal;
  f64v y = f64_splat(-f->y[j]);
#pragma GCC unroll 16
  for (int v = 0; v < CODES_CHUNK / F64_LANES; v++)
    f64_store(f->b + v * F64_LANES,
              f64_fma(f64_load(a + v * F64_LANES), y, f64_load(f->b + v * F64_LANES)));
}

/* No chain uses the column of a dropped vector.  It is zeroed so that codes_back() can read whole
 * rows of l. */
static void codes_column_drop(const struct factor_job *f, idx j)
{
  for (idx i = j < f->old ? 0 : j - f->old; i < f->count; i++)
    f->l[codes_row_start(f->old + i) + j] = 0;
  if (f->y && j >= f->old) f->y[j] = 0;
}

/* Reduce column j of a vector of the chunk; returns whether the rank test keeps the vector. */
static int codes_column_keep(const struct factor_job *f, idx j)
{
  real *diagonal = codes_chunk_column(f, j) + (j - f->old), min = DROP_TOLERANCE * *diagonal;
  *diagonal += f->rho;
  codes_column_reduce(f, j);
  return f->kept[j] = *diagonal > min;
}

static void codes_factor(const struct factor_job *f)
{
  for (idx j = 0; j < f->old; j++) {
    if (f->kept[j]) {
      codes_column_reduce(f, j);
      codes_column_finish(f, j, f->l[codes_row_start(j) + j]);
    } else {
      codes_column_drop(f, j);
    }
  }
  for (idx j = f->old; j < f->old + f->count; j++) {
    if (codes_column_keep(f, j)) {
      codes_column_finish(f, j, sqrt(codes_chunk_column(f, j)[j - f->old]));
    } else {
      codes_column_drop(f, j);
    }
  }
}

/* All chains advance together, in descending order of k.  Reads up to F64_LANES - 1 reals past a
 * row of l. */
static void codes_back(const real *l, const real *y, const idx *kept, idx m, real *codes,
                       real *work)
{
  memcpy(work, y, (size_t)m * sizeof(real));
  for (idx k = m - 1; k >= 0; k--) {
    const real *row = l + codes_row_start(k);
    codes[k] = 0;
    if (!kept[k]) continue;
    codes[k] = work[k] / row[k];
    f64v c = f64_splat(-codes[k]);
    for (idx i = 0; i < k; i += F64_LANES)
      f64_store(work + i, f64_fma(f64_load(row + i), c, f64_load(work + i)));
  }
}

enum { CODES_SPAN = 8 * F64_LANES };

static void codes_residual(const float *row, const float *const *vector, idx m, idx p,
                           const real *codes, float *out)
{
  idx c = 0;
  for (; c + CODES_SPAN <= p; c += CODES_SPAN) {
    f64v sum[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) sum[v] = f64_widen(row + c + v * F64_LANES);
    for (idx j = 0; j < m; j++) {
      f64v code = f64_splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++)
        sum[v] = f64_fma(f64_widen(vector[j] + c + v * F64_LANES), code, sum[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) {
      f32h rounded = __builtin_convertvector(sum[v], f32h);
      memcpy(out + c + v * F64_LANES, &rounded, sizeof rounded);
    }
  }
  for (; c < p; c++) {
    real sum = row[c];
    for (idx j = 0; j < m; j++) sum = fma(-codes[j], (real)vector[j][c], sum);
    out[c] = (float)sum;
  }
}

/* Error and reconstruction of the row, column by column. */
static void codes_describe(const float *row, const float *const *vector, idx m, idx p,
                           const real *codes, real *error, real *fit)
{
  idx c = 0;
  for (; c + 4 * F64_LANES <= p; c += 4 * F64_LANES) {
    f64v e[4], f[4];
#pragma GCC unroll 16
    for (int v = 0; v < 4; v++) {
      e[v] = f64_widen(row + c + v * F64_LANES);
      f[v] = f64_splat(0);
    }
    for (idx j = 0; j < m; j++) {
      f64v code = f64_splat(codes[j]), negative = f64_splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 4; v++) {
        f64v d = f64_widen(vector[j] + c + v * F64_LANES);
        e[v] = f64_fma(negative, d, e[v]);
        f[v] = f64_fma(code, d, f[v]);
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < 4; v++) {
      f64_store(error + c + v * F64_LANES, e[v]);
      f64_store(fit + c + v * F64_LANES, f[v]);
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

static void codes_quality(const float *row, const float *const *vector, idx m, idx p,
                          const real *codes, real *work, struct row_quality *q)
{
  const real *error = work, *fit = work + p;
  real sum = 0, dot = 0, row_norm = 0, fit_norm = 0;
  codes_describe(row, vector, m, p, codes, work, work + p);
  for (idx c = 0; c < p; c++) {
    sum = fma(error[c], error[c], sum);
    dot = fma((real)row[c], fit[c], dot);
    row_norm = fma((real)row[c], (real)row[c], row_norm);
    fit_norm = fma(fit[c], fit[c], fit_norm);
  }
  real norms = sqrt(row_norm) * sqrt(fit_norm);
  q->error = sum;
  q->cosine = norms > 0 ? dot / norms : 0;
  q->square = row_norm;
}
