/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of a refit for any vector width: products, sums and moves of rows.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h.
 *
 * Lanes are columns of the data.  They are the chains of a lane product (base/sums.h), or
 * independent chains over rows or vectors. */
#include <math.h>

#include "base/sums.h"
#include "device/cpu/refit_loops.h"

enum {
  REFIT_PARTS = LANE_COUNT / F64_LANES,   /* vectors that hold the 32 lanes of a product */
  REFIT_ABREAST = F64_LANES == 8 ? 4 : 1, /* products at a time, as many as registers hold */
};

/* out[count] <- the lane products of x[p] with vectors[count][p].  count is at most REFIT_ABREAST,
 * and a constant where this is inlined. */
ALWAYS_INLINE void refit_products_part(const real *x, const real *vectors, int count, idx p,
                                       real *out)
{
  f64v sum[REFIT_ABREAST][REFIT_PARTS];
  real lane[LANE_COUNT];
  idx c = 0;
#pragma GCC unroll 16
  for (int v = 0; v < count; v++)
#pragma GCC unroll 16
    for (int k = 0; k < REFIT_PARTS; k++) sum[v][k] = f64_splat(0);
  for (; c + LANE_COUNT <= p; c += LANE_COUNT) {
#pragma GCC unroll 16
    for (int k = 0; k < REFIT_PARTS; k++) {
      f64v at = f64_load(x + c + k * F64_LANES);
#pragma GCC unroll 16
      for (int v = 0; v < count; v++)
        sum[v][k] = f64_fma(at, f64_load(vectors + (gidx)v * p + c + k * F64_LANES), sum[v][k]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < count; v++) {
    if (c < p) {
      for (int k = 0; k < REFIT_PARTS; k++) f64_store(lane + k * F64_LANES, sum[v][k]);
      for (idx i = 0; c + i < p; i++)
        lane[i] = fma(x[c + i], vectors[(gidx)v * p + c + i], lane[i]);
      for (int k = 0; k < REFIT_PARTS; k++) sum[v][k] = f64_load(lane + k * F64_LANES);
    }
#pragma GCC unroll 16
    for (int half = REFIT_PARTS / 2; half >= 1; half /= 2)
#pragma GCC unroll 16
      for (int k = 0; k < half; k++) sum[v][k] = sum[v][k] + sum[v][k + half];
    out[v] = f64_sum(sum[v][0]);
  }
}

static void refit_products(const real *row, const real *vectors, idx count, idx p, real *out)
{
  idx v = 0;
  if (!vectors) vectors = row;
  for (; v + REFIT_ABREAST <= count; v += REFIT_ABREAST)
    refit_products_part(row, vectors + (gidx)v * p, REFIT_ABREAST, p, out + v);
  for (; v < count; v++) refit_products_part(row, vectors + (gidx)v * p, 1, p, out + v);
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

/* out <- r + sign U t.  refit_add() passes d = 1 as a constant, since the loop is then faster. */
ALWAYS_INLINE void refit_add_frame(const real *r, const real *u, const real *t, real sign, idx d,
                                   idx p, real *out)
{
  idx c = 0;
  for (; c + F64_LANES <= p; c += F64_LANES) {
    f64v x = f64_load(r + c);
    for (idx m = 0; m < d; m++)
      x = f64_fma(f64_load(u + (gidx)m * p + c), f64_splat(sign * t[m]), x);
    f64_store(out + c, x);
  }
  for (; c < p; c++) {
    real x = r[c];
    for (idx m = 0; m < d; m++) x = fma(u[(gidx)m * p + c], sign * t[m], x);
    out[c] = x;
  }
}

static void refit_add(const real *r, const real *u, const real *t, real sign, idx d, idx p,
                      real *out)
{
  if (d == 1)
    refit_add_frame(r, u, t, sign, 1, p, out);
  else
    refit_add_frame(r, u, t, sign, d, p, out);
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

/* u <- u divided by its norm; returns 0 if the norm is 0 or not finite. */
ALWAYS_INLINE int refit_normalize(real *u, idx p)
{
  idx c = 0;
  real squares;
  refit_products_part(u, u, 1, p, &squares);
  real norm = sqrt(squares);
  if (!(norm > 0x1p-20 * norm)) return 0; /* as frame_orthonormalize() */
  for (; c + F64_LANES <= p; c += F64_LANES) f64_store(u + c, f64_load(u + c) / f64_splat(norm));
  for (; c < p; c++) u[c] /= norm;
  return 1;
}

static void refit_relax(real *u, const float *v, idx p, real further)
{
  idx c = 0;
  for (; c + F64_LANES <= p; c += F64_LANES) {
    f64v x = f64_load(u + c);
    f64_store(u + c, f64_fma(f64_splat(further), x - f64_widen(v + c), x));
  }
  for (; c < p; c++) u[c] = fma(further, u[c] - v[c], u[c]);
  if (refit_normalize(u, p)) return;
  for (c = 0; c < p; c++) u[c] = v[c];
}

static real refit_round(real *u, float *v, idx p)
{
  real move = 0;
  for (idx c = 0; c < p; c++) {
    real step = u[c] - v[c];
    move = fma(step, step, move);
    v[c] = (float)u[c];
    u[c] = v[c];
  }
  return move;
}

static const struct refit_loops refit_table = {
    .products = refit_products,
    .sum = refit_sum,
    .add = refit_add,
    .residual = refit_residual,
    .relax = refit_relax,
    .round = refit_round,
};
