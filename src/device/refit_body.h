/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of a refit for any vector width: products, sums and moves of rows.
 *
 * Floor: device.  Included once by each refit_<variant>.c, which defines REFIT_TABLE, the table's
 * name, LANES, doubles a vector, lanes, a vector of as many doubles, and fmadd(), a b + c rounded
 * once.
 *
 * A chain never runs along a vector: lanes are rows, or columns of the data. */
#include <math.h>
#include <string.h>

#include "device/lanes.h"
#include "device/refit_loops.h"

#define INLINE static inline __attribute__((always_inline))
enum { PARTS = GROUP / LANES, COLUMNS = 64, VECTORS = 4 };
typedef real v4 __attribute__((vector_size(32)));

/* Four columns of four rows, turned. */
static inline void turn(const real *const *row, idx c, real *out)
{
  v4 a, b, e, f;
  memcpy(&a, row[0] + c, sizeof a);
  memcpy(&b, row[1] + c, sizeof b);
  memcpy(&e, row[2] + c, sizeof e);
  memcpy(&f, row[3] + c, sizeof f);
  v4 low = __builtin_shufflevector(a, b, 0, 4, 2, 6),
     high = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  v4 low2 = __builtin_shufflevector(e, f, 0, 4, 2, 6);
  v4 high2 = __builtin_shufflevector(e, f, 1, 5, 3, 7);
  a = __builtin_shufflevector(low, low2, 0, 1, 4, 5);
  b = __builtin_shufflevector(high, high2, 0, 1, 4, 5);
  e = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
  f = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
  memcpy(out, &a, sizeof a);
  memcpy(out + GROUP, &b, sizeof b);
  memcpy(out + 2 * GROUP, &e, sizeof e);
  memcpy(out + 3 * GROUP, &f, sizeof f);
}

/* out[n][GROUP] <- columns c .. c + n - 1 of GROUP rows. */
static void pack(const real *const *row, idx c, idx n, real *out)
{
  idx i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < GROUP; k += 4) turn(row + k, c + i, out + (gidx)i * GROUP + k);
  for (; i < n; i++)
    for (int k = 0; k < GROUP; k++) out[(gidx)i * GROUP + k] = row[k][c + i];
}

/* sum[count][GROUP] go on over n packed columns; count <= VECTORS, a constant where inlined. */
INLINE void products_part(const real *packed, const real *vectors, int count, idx n, idx p,
                          real *out)
{
  lanes sum[VECTORS][PARTS];
#pragma GCC unroll 16
  for (int v = 0; v < count; v++) {
#pragma GCC unroll 16
    for (int k = 0; k < PARTS; k++) sum[v][k] = load(out + v * GROUP + k * LANES);
  }
  for (idx c = 0; c < n; c++) {
#pragma GCC unroll 16
    for (int k = 0; k < PARTS; k++) {
      lanes x = load(packed + (gidx)c * GROUP + k * LANES);
#pragma GCC unroll 16
      for (int v = 0; v < count; v++)
        sum[v][k] = fmadd(x, splat(vectors[(gidx)v * p + c]), sum[v][k]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < count; v++) {
#pragma GCC unroll 16
    for (int k = 0; k < PARTS; k++) store(out + v * GROUP + k * LANES, sum[v][k]);
  }
}

static void squares_part(const real *packed, idx n, real *out)
{
  for (int k = 0; k < PARTS; k++) {
    lanes sum = load(out + k * LANES);
    for (idx c = 0; c < n; c++) {
      lanes x = load(packed + (gidx)c * GROUP + k * LANES);
      sum = fmadd(x, x, sum);
    }
    store(out + k * LANES, sum);
  }
}

static void products(const real *const *row, const real *vectors, idx count, idx p, real *out)
{
  real packed[COLUMNS * GROUP];
  memset(out, 0, (size_t)count * GROUP * sizeof *out);
  for (idx c = 0; c < p; c += COLUMNS) {
    idx n = p - c < COLUMNS ? p - c : COLUMNS, v = 0;
    pack(row, c, n, packed);
    if (!vectors) {
      squares_part(packed, n, out);
      continue;
    }
    for (; v + VECTORS <= count; v += VECTORS)
      products_part(packed, vectors + (gidx)v * p + c, VECTORS, n, p, out + v * GROUP);
    for (; v < count; v++)
      products_part(packed, vectors + (gidx)v * p + c, 1, n, p, out + v * GROUP);
  }
}

enum { SPAN = 8 * LANES };

static void sum(const real *residual, const idx *rows, idx n, idx p, const real *weight, idx stride,
                real *out)
{
  idx c = 0;
  for (; c + SPAN <= p; c += SPAN) {
    lanes acc[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) acc[v] = splat(0);
    for (idx i = 0; i < n; i++) {
      const real *r = residual + (gidx)rows[i] * p + c;
      lanes w = splat(weight[(gidx)i * stride]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++) acc[v] = fmadd(load(r + v * LANES), w, acc[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) store(out + c + v * LANES, acc[v]);
  }
  for (; c < p; c++) {
    real acc = 0;
    for (idx i = 0; i < n; i++)
      acc = fma(residual[(gidx)rows[i] * p + c], weight[(gidx)i * stride], acc);
    out[c] = acc;
  }
}

/* Codes of LANES rows from b[d] (step_solve). */
INLINE void solve(const real *l, idx d, const lanes *b, lanes *t)
{
  if (d == 1) {
    t[0] = b[0] / splat(l[0]);
    return;
  }
  for (idx i = 0; i < d; i++) {
    lanes acc = b[i];
    for (idx k = 0; k < i; k++) acc = fmadd(splat(-l[i * d + k]), t[k], acc);
    t[i] = acc / splat(l[i * d + i]);
  }
  for (idx i = d - 1; i >= 0; i--) {
    lanes acc = t[i];
    for (idx k = d - 1; k > i; k--) acc = fmadd(splat(-l[k * d + i]), t[k], acc);
    t[i] = acc / splat(l[i * d + i]);
  }
}

/* r + U_old t_old in work, and its products b with the new frame; d is a constant where it pays. */
INLINE void move_back(const struct group_move *j, idx d, lanes b[PARTS][FRAME_MOST])
{
  lanes t[PARTS][FRAME_MOST];
  for (idx m = 0; m < d; m++)
    for (int k = 0; k < PARTS; k++) {
      t[k][m] = load(j->t_old + m * GROUP + k * LANES);
      b[k][m] = splat(0);
    }
  for (idx c = 0; c < j->p; c++)
#pragma GCC unroll 2
    for (int k = 0; k < PARTS; k++) {
      real *at = j->work + (gidx)c * GROUP + k * LANES;
      lanes x = load(at);
      for (idx m = 0; m < d; m++) x = fmadd(splat(j->u_old[(gidx)m * j->p + c]), t[k][m], x);
      for (idx m = 0; m < d; m++) b[k][m] = fmadd(x, splat(j->u_new[(gidx)m * j->p + c]), b[k][m]);
      store(at, x);
    }
}

/* Sums of squares of what the new frame leaves over. */
INLINE void move_forth(const struct group_move *j, idx d, lanes t[PARTS][FRAME_MOST],
                       lanes squares[PARTS])
{
  for (int k = 0; k < PARTS; k++) squares[k] = splat(0);
  for (idx c = 0; c < j->p; c++)
#pragma GCC unroll 2
    for (int k = 0; k < PARTS; k++) {
      lanes e = load(j->work + (gidx)c * GROUP + k * LANES);
      for (idx m = 0; m < d; m++) e = fmadd(splat(-j->u_new[(gidx)m * j->p + c]), t[k][m], e);
      squares[k] = fmadd(e, e, squares[k]);
    }
}

INLINE void move_frame(const struct group_move *j, idx d)
{
  lanes b[PARTS][FRAME_MOST], t[PARTS][FRAME_MOST], squares[PARTS];
  move_back(j, d, b);
  for (int k = 0; k < PARTS; k++) solve(j->l, d, b[k], t[k]);
  move_forth(j, d, t, squares);
  for (int k = 0; k < PARTS; k++) {
    lanes codes = splat(0);
    for (idx m = 0; m < d; m++) codes = fmadd(t[k][m], t[k][m], codes);
    for (idx m = 0; m < d; m++) store(j->t_new + m * GROUP + k * LANES, t[k][m]);
    store(j->objective + k * LANES, fmadd(splat(j->rho), codes, squares[k]));
  }
}

static void move(const struct group_move *j)
{
  pack(j->row, 0, j->p, j->work);
  if (j->d == 1)
    move_frame(j, 1);
  else
    move_frame(j, j->d);
}

static void keep(real *r, const real *u_old, const real *t_old, const real *u_new,
                 const real *t_new, idx d, idx p)
{
  idx c = 0;
  for (; c + LANES <= p; c += LANES) {
    lanes x = load(r + c);
    for (idx m = 0; m < d; m++) x = fmadd(load(u_old + (gidx)m * p + c), splat(t_old[m]), x);
    for (idx m = 0; m < d; m++) x = fmadd(load(u_new + (gidx)m * p + c), splat(-t_new[m]), x);
    store(r + c, x);
  }
  for (; c < p; c++) {
    for (idx m = 0; m < d; m++) r[c] = fma(u_old[(gidx)m * p + c], t_old[m], r[c]);
    for (idx m = 0; m < d; m++) r[c] = fma(-u_new[(gidx)m * p + c], t_new[m], r[c]);
  }
}

static void residual(const float *x, const real *const *vector, idx m, idx p, const real *codes,
                     real *r)
{
  idx c = 0;
  for (; c + SPAN <= p; c += SPAN) {
    lanes acc[8];
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++)
      for (int i = 0; i < LANES; i++) acc[v][i] = x[c + v * LANES + i];
    for (idx j = 0; j < m; j++) {
      lanes code = splat(-codes[j]);
#pragma GCC unroll 16
      for (int v = 0; v < 8; v++) acc[v] = fmadd(load(vector[j] + c + v * LANES), code, acc[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < 8; v++) store(r + c + v * LANES, acc[v]);
  }
  for (; c < p; c++) {
    real acc = x[c];
    for (idx j = 0; j < m; j++) acc = fma(-codes[j], vector[j][c], acc);
    r[c] = acc;
  }
}

static real dot(const real *a, const real *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma(a[c], b[c], acc);
  return acc;
}

static void subtract(real s, const real *b, idx p, real *v)
{
  idx c = 0;
  for (; c + LANES <= p; c += LANES) store(v + c, fmadd(load(b + c), splat(-s), load(v + c)));
  for (; c < p; c++) v[c] = fma(-s, b[c], v[c]);
}

const struct refit_loops REFIT_TABLE = {
    .products = products,
    .sum = sum,
    .move = move,
    .keep = keep,
    .residual = residual,
    .dot = dot,
    .subtract = subtract,
};
