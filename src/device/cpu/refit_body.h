/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of a refit for any vector width: products, sums and moves of rows.
 *
 * Floor: device.  Included by units, behind vectors.h.
 *
 * A chain never runs along a vector: lanes are rows, or columns of the data. */
#include <math.h>
#include <string.h>

#include "device/cpu/refit_loops.h"

enum { REFIT_PARTS = REFIT_GROUP / F64_LANES, REFIT_COLUMNS = 64, REFIT_VECTORS = 4 };
typedef real f64x4 __attribute__((vector_size(32)));

/* out[4][REFIT_GROUP] <- four columns of four rows, transposed. */
static inline void refit_turn(const real *const *row, idx c, real *out)
{
  f64x4 a, b, e, f;
  memcpy(&a, row[0] + c, sizeof a);
  memcpy(&b, row[1] + c, sizeof b);
  memcpy(&e, row[2] + c, sizeof e);
  memcpy(&f, row[3] + c, sizeof f);
  f64x4 low = __builtin_shufflevector(a, b, 0, 4, 2, 6),
        high = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  f64x4 low2 = __builtin_shufflevector(e, f, 0, 4, 2, 6);
  f64x4 high2 = __builtin_shufflevector(e, f, 1, 5, 3, 7);
  a = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
  b = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
  e = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
  f = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
  memcpy(out, &a, sizeof a);
  memcpy(out + REFIT_GROUP, &b, sizeof b);
  memcpy(out + 2 * REFIT_GROUP, &e, sizeof e);
  memcpy(out + 3 * REFIT_GROUP, &f, sizeof f);
}

/* out[n][REFIT_GROUP] <- columns c .. c + n - 1 of REFIT_GROUP rows. */
static void refit_pack(const real *const *row, idx c, idx n, real *out)
{
  idx i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < REFIT_GROUP; k += 4)
      refit_turn(row + k, c + i, out + (gidx)i * REFIT_GROUP + k);
  for (; i < n; i++)
    for (int k = 0; k < REFIT_GROUP; k++) out[(gidx)i * REFIT_GROUP + k] = row[k][c + i];
}

/* out[count][REFIT_GROUP]: the chains go on over n packed columns; count <= REFIT_VECTORS, a
 * constant where this is inlined. */
ALWAYS_INLINE void refit_products_part(const real *packed, const real *vectors, int count, idx n,
                                       idx p, real *out)
{
  f64v sum[REFIT_VECTORS][REFIT_PARTS];
#pragma GCC unroll 16
  for (int v = 0; v < count; v++) {
#pragma GCC unroll 16
    for (int k = 0; k < REFIT_PARTS; k++)
      sum[v][k] = f64_load(out + v * REFIT_GROUP + k * F64_LANES);
  }
  for (idx c = 0; c < n; c++) {
#pragma GCC unroll 16
    for (int k = 0; k < REFIT_PARTS; k++) {
      f64v x = f64_load(packed + (gidx)c * REFIT_GROUP + k * F64_LANES);
#pragma GCC unroll 16
      for (int v = 0; v < count; v++)
        sum[v][k] = f64_fma(x, f64_splat(vectors[(gidx)v * p + c]), sum[v][k]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < count; v++) {
#pragma GCC unroll 16
    for (int k = 0; k < REFIT_PARTS; k++)
      f64_store(out + v * REFIT_GROUP + k * F64_LANES, sum[v][k]);
  }
}

static void refit_squares_part(const real *packed, idx n, real *out)
{
  for (int k = 0; k < REFIT_PARTS; k++) {
    f64v sum = f64_load(out + k * F64_LANES);
    for (idx c = 0; c < n; c++) {
      f64v x = f64_load(packed + (gidx)c * REFIT_GROUP + k * F64_LANES);
      sum = f64_fma(x, x, sum);
    }
    f64_store(out + k * F64_LANES, sum);
  }
}

static void refit_products(const real *const *row, const real *vectors, idx count, idx p, real *out)
{
  real packed[REFIT_COLUMNS * REFIT_GROUP];
  memset(out, 0, (size_t)count * REFIT_GROUP * sizeof *out);
  for (idx c = 0; c < p; c += REFIT_COLUMNS) {
    idx n = p - c < REFIT_COLUMNS ? p - c : REFIT_COLUMNS, v = 0;
    refit_pack(row, c, n, packed);
    if (!vectors) {
      refit_squares_part(packed, n, out);
      continue;
    }
    for (; v + REFIT_VECTORS <= count; v += REFIT_VECTORS)
      refit_products_part(packed, vectors + (gidx)v * p + c, REFIT_VECTORS, n, p,
                          out + v * REFIT_GROUP);
    for (; v < count; v++)
      refit_products_part(packed, vectors + (gidx)v * p + c, 1, n, p, out + v * REFIT_GROUP);
  }
}

enum { REFIT_SPAN = 8 * F64_LANES };

static void refit_sum(const real *residual, const idx *rows, idx n, idx p, const real *weight,
                      idx stride, real *out)
{
  idx c = 0;
  for (; c + REFIT_SPAN <= p; c += REFIT_SPAN) {
    f64v acc[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) acc[v] = f64_splat(0);
    for (idx i = 0; i < n; i++) {
      const real *r = residual + (gidx)rows[i] * p + c;
      f64v w = f64_splat(weight[(gidx)i * stride]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++) acc[v] = f64_fma(f64_load(r + v * F64_LANES), w, acc[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) f64_store(out + c + v * F64_LANES, acc[v]);
  }
  for (; c < p; c++) {
    real acc = 0;
    for (idx i = 0; i < n; i++)
      acc = fma(residual[(gidx)rows[i] * p + c], weight[(gidx)i * stride], acc);
    out[c] = acc;
  }
}

/* Codes of F64_LANES rows from b[d] (step_solve). */
ALWAYS_INLINE void refit_solve(const real *l, idx d, const f64v *b, f64v *t)
{
  if (d == 1) {
    t[0] = b[0] / f64_splat(l[0]);
    return;
  }
  for (idx i = 0; i < d; i++) {
    f64v acc = b[i];
    for (idx k = 0; k < i; k++) acc = f64_fma(f64_splat(-l[i * d + k]), t[k], acc);
    t[i] = acc / f64_splat(l[i * d + i]);
  }
  for (idx i = d - 1; i >= 0; i--) {
    f64v acc = t[i];
    for (idx k = d - 1; k > i; k--) acc = f64_fma(f64_splat(-l[k * d + i]), t[k], acc);
    t[i] = acc / f64_splat(l[i * d + i]);
  }
}

/* r + U_old t_old in work, and its products b with the new frame; d is a constant where it pays. */
ALWAYS_INLINE void refit_move_back(const struct group_move *j, idx d,
                                   f64v b[REFIT_PARTS][MAX_FRAME])
{
  f64v t[REFIT_PARTS][MAX_FRAME];
  for (idx m = 0; m < d; m++)
    for (int k = 0; k < REFIT_PARTS; k++) {
      t[k][m] = f64_load(j->t_old + m * REFIT_GROUP + k * F64_LANES);
      b[k][m] = f64_splat(0);
    }
  for (idx c = 0; c < j->p; c++)
#pragma GCC unroll 2
    for (int k = 0; k < REFIT_PARTS; k++) {
      real *at = j->work + (gidx)c * REFIT_GROUP + k * F64_LANES;
      f64v x = f64_load(at);
      for (idx m = 0; m < d; m++) x = f64_fma(f64_splat(j->u_old[(gidx)m * j->p + c]), t[k][m], x);
      for (idx m = 0; m < d; m++)
        b[k][m] = f64_fma(x, f64_splat(j->u_new[(gidx)m * j->p + c]), b[k][m]);
      f64_store(at, x);
    }
}

/* Sums of squares of what the new frame leaves over. */
ALWAYS_INLINE void refit_move_forth(const struct group_move *j, idx d,
                                    f64v t[REFIT_PARTS][MAX_FRAME], f64v squares[REFIT_PARTS])
{
  for (int k = 0; k < REFIT_PARTS; k++) squares[k] = f64_splat(0);
  for (idx c = 0; c < j->p; c++)
#pragma GCC unroll 2
    for (int k = 0; k < REFIT_PARTS; k++) {
      f64v e = f64_load(j->work + (gidx)c * REFIT_GROUP + k * F64_LANES);
      for (idx m = 0; m < d; m++) e = f64_fma(f64_splat(-j->u_new[(gidx)m * j->p + c]), t[k][m], e);
      squares[k] = f64_fma(e, e, squares[k]);
    }
}

ALWAYS_INLINE void refit_move_frame(const struct group_move *j, idx d)
{
  f64v b[REFIT_PARTS][MAX_FRAME], t[REFIT_PARTS][MAX_FRAME], squares[REFIT_PARTS];
  refit_move_back(j, d, b);
  for (int k = 0; k < REFIT_PARTS; k++) refit_solve(j->l, d, b[k], t[k]);
  if (d == 1 && j->nonnegative)
    for (int k = 0; k < REFIT_PARTS; k++) t[k][0] = (f64v)((i64v)t[k][0] & (t[k][0] > 0));
  refit_move_forth(j, d, t, squares);
  for (int k = 0; k < REFIT_PARTS; k++) {
    f64v codes = f64_splat(0);
    for (idx m = 0; m < d; m++) codes = f64_fma(t[k][m], t[k][m], codes);
    for (idx m = 0; m < d; m++) f64_store(j->t_new + m * REFIT_GROUP + k * F64_LANES, t[k][m]);
    f64_store(j->objective + k * F64_LANES, f64_fma(f64_splat(j->rho), codes, squares[k]));
  }
}

static void refit_move(const struct group_move *j)
{
  refit_pack(j->row, 0, j->p, j->work);
  if (j->d == 1)
    refit_move_frame(j, 1);
  else
    refit_move_frame(j, j->d);
}

static void refit_keep(real *r, const real *u_old, const real *t_old, const real *u_new,
                       const real *t_new, idx d, idx p)
{
  idx c = 0;
  for (; c + F64_LANES <= p; c += F64_LANES) {
    f64v x = f64_load(r + c);
    for (idx m = 0; m < d; m++)
      x = f64_fma(f64_load(u_old + (gidx)m * p + c), f64_splat(t_old[m]), x);
    for (idx m = 0; m < d; m++)
      x = f64_fma(f64_load(u_new + (gidx)m * p + c), f64_splat(-t_new[m]), x);
    f64_store(r + c, x);
  }
  for (; c < p; c++) {
    for (idx m = 0; m < d; m++) r[c] = fma(u_old[(gidx)m * p + c], t_old[m], r[c]);
    for (idx m = 0; m < d; m++) r[c] = fma(-u_new[(gidx)m * p + c], t_new[m], r[c]);
  }
}

static void refit_residual(const float *x, const real *const *vector, idx m, idx p,
                           const real *codes, real *r)
{
  idx c = 0;
  for (; c + REFIT_SPAN <= p; c += REFIT_SPAN) {
    f64v acc[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) acc[v] = f64_widen(x + c + v * F64_LANES);
    for (idx j = 0; j < m; j++) {
      f64v code = f64_splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++)
        acc[v] = f64_fma(f64_load(vector[j] + c + v * F64_LANES), code, acc[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) f64_store(r + c + v * F64_LANES, acc[v]);
  }
  for (; c < p; c++) {
    real acc = x[c];
    for (idx j = 0; j < m; j++) acc = fma(-codes[j], vector[j][c], acc);
    r[c] = acc;
  }
}

static real refit_dot(const real *a, const real *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma(a[c], b[c], acc);
  return acc;
}

static void refit_subtract(real s, const real *b, idx p, real *v)
{
  idx c = 0;
  for (; c + F64_LANES <= p; c += F64_LANES)
    f64_store(v + c, f64_fma(f64_load(b + c), f64_splat(-s), f64_load(v + c)));
  for (; c < p; c++) v[c] = fma(-s, b[c], v[c]);
}

static const struct refit_loops refit_table = {
    .products = refit_products,
    .sum = refit_sum,
    .move = refit_move,
    .keep = refit_keep,
    .residual = refit_residual,
    .dot = refit_dot,
    .subtract = refit_subtract,
};
