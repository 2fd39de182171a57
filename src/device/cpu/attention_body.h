/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of attention for any vector width: inner products, exponentials, sums of values.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h.
 *
 * The functions of (N.26) are written here for vectors; model/functions.c has the scalar ones. */
#include <math.h>
#include <string.h>

#include "device/cpu/attention_loops.h"

/* Lanes of a where the mask is set, and lanes of b elsewhere. */
ALWAYS_INLINE f32v f32_select(i32v mask, f32v a, f32v b)
{
  return (f32v)((mask & (i32v)a) | (~mask & (i32v)b));
}

ALWAYS_INLINE f32v f32_horner(const float *c, int n, f32v x)
{
  f32v sum = f32_splat(c[n - 1]);
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; i--) sum = f32_fma(sum, x, f32_splat(c[i]));
  return sum;
}

ALWAYS_INLINE f32v f32_exp2(f32v x)
{
  static const float c[] = {1,
                            0x1.62e430p-1f,
                            0x1.ebfbdcp-3f,
                            0x1.c6aee8p-5f,
                            0x1.3b2d4ap-7f,
                            0x1.5f3e2cp-10f,
                            0x1.41fd02p-13f};
  const f32v round = f32_splat(0x1.8p23f), low = f32_splat(-151), high = f32_splat(129);
  x = f32_select((i32v)(x < low), low, x);
  x = f32_select((i32v)(x > high), high, x);
  f32v rounded = x + round, rest = x - (rounded - round);
  i32v n = (i32v)rounded - (i32v)round, half = n >> 1;
  f32v power = f32_horner(c, 7, rest);
  return power * (f32v)((half + 127) << 23) * (f32v)((n - half + 127) << 23);
}

ALWAYS_INLINE f32v f32_tanh(f32v x)
{
  static const float c[] = {-0x1.555554p-2f, 0x1.11106ep-3f,  -0x1.b9f006p-5f,
                            0x1.6399d8p-6f,  -0x1.0c3710p-7f, 0x1.19c33cp-9f};
  const i32v sign = (i32v){0} + INT32_MIN;
  f32v size = (f32v)((i32v)x & ~sign), square = x * x;
  f32v small = f32_fma(size * square, f32_horner(c, 6, square), size);
  f32v large = 1 - 2 / (f32_exp2(f32_splat(2 * 0x1.715476p+0f) * size) + 1);
  f32v out = f32_select((i32v)(size < f32_splat(0.625f)), small, large);
  return (f32v)((i32v)out | ((i32v)x & sign));
}

ALWAYS_INLINE float f32_exp2_one(float x)
{
  return f32_exp2(f32_splat(x))[0];
}

/* out[rows][..] <- chains over t < terms of fma(a[row][t], b[t][..], out); `vectors` vectors of
 * columns. */
ALWAYS_INLINE void attention_chains_part(int rows, int vectors, const float *a, gidx a_stride,
                                         idx terms, const float *b, gidx b_stride, float *out,
                                         gidx out_stride)
{
  f32v sum[ATTENTION_ROWS][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
    for (int x = 0; x < vectors; x++) sum[r][x] = f32_load(out + r * out_stride + x * F32_LANES);
  }
  for (idx t = 0; t < terms; t++) {
    f32v from[2];
#pragma GCC unroll 16
    for (int x = 0; x < vectors; x++) from[x] = f32_load(b + t * b_stride + x * F32_LANES);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      f32v factor = f32_splat(a[r * a_stride + t]);
#pragma GCC unroll 16
      for (int x = 0; x < vectors; x++) sum[r][x] = f32_fma(factor, from[x], sum[r][x]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 16
    for (int x = 0; x < vectors; x++) f32_store(out + r * out_stride + x * F32_LANES, sum[r][x]);
  }
}

/* The same for all columns, a multiple of ATTENTION_PAD; rows is a constant where it is inlined. */
ALWAYS_INLINE void attention_chains(int rows, const float *a, gidx a_stride, idx terms,
                                    const float *b, gidx b_stride, idx columns, float *out,
                                    gidx out_stride)
{
  idx x = 0;
  for (; x + 2 * F32_LANES <= columns; x += 2 * F32_LANES)
    attention_chains_part(rows, 2, a, a_stride, terms, b + x, b_stride, out + x, out_stride);
  for (; x < columns; x += F32_LANES)
    attention_chains_part(rows, 1, a, a_stride, terms, b + x, b_stride, out + x, out_stride);
}

/* attention_chains() for all rows of a tile at once; below, for a single row. */
static NOINLINE void attention_rows(const float *a, gidx a_stride, idx terms, const float *b,
                                    gidx b_stride, idx columns, float *out, gidx out_stride)
{
  attention_chains(ATTENTION_ROWS, a, a_stride, terms, b, b_stride, columns, out, out_stride);
}

static NOINLINE void attention_one(const float *a, idx terms, const float *b, gidx b_stride,
                                   idx columns, float *out)
{
  attention_chains(1, a, 0, terms, b, b_stride, columns, out, 0);
}

/* u[rows][ATTENTION_BLOCK] <- inner products of the queries q[rows][d] and the keys of a block;
 * rows is ATTENTION_ROWS or 1. */
static void attention_inner(int rows, const float *q, idx d, const float *k, float *u)
{
  _Alignas(64) float chain[ATTENTION_ROWS * ATTENTION_BLOCK];
  for (idx first = 0; first < d; first += ATTENTION_CHAIN) {
    idx terms = d - first < ATTENTION_CHAIN ? d - first : ATTENTION_CHAIN;
    const float *key = k + (gidx)first * ATTENTION_BLOCK;
    float *to = first ? chain : u;
    memset(to, 0, sizeof *to * (size_t)(rows * ATTENTION_BLOCK));
    if (rows == 1)
      attention_one(q + first, terms, key, ATTENTION_BLOCK, ATTENTION_BLOCK, to);
    else
      attention_rows(q + first, d, terms, key, ATTENTION_BLOCK, ATTENTION_BLOCK, to,
                     ATTENTION_BLOCK);
    if (first)
      for (idx i = 0; i < rows * ATTENTION_BLOCK; i += F32_LANES)
        f32_store(u + i, f32_load(u + i) + f32_load(chain + i));
  }
}

/* The largest number of a block; NaN if it has a NaN. */
ALWAYS_INLINE float attention_largest(const float *u)
{
  f32v best = f32_load(u);
  i32v bad = (i32v)(best != best);
  for (idx j = F32_LANES; j < ATTENTION_BLOCK; j += F32_LANES) {
    f32v next = f32_load(u + j);
    bad |= (i32v)(next != next);
    best = f32_select((i32v)(next > best), next, best);
  }
  float out = best[0];
  for (int i = 1; i < F32_LANES; i++) out = best[i] > out ? best[i] : out;
  return mask_bits(bad) ? NAN : out;
}

/* u[ATTENTION_BLOCK] <- the weights of positions from .. end - 1 of a block for a row, from inner
 * products in u.  m of the row becomes the new maximum, and l and acc are rescaled to it. */
ALWAYS_INLINE void attention_weights(struct attention_tile *t, idx r, idx from, idx end, float *u)
{
  if (t->factors.inner != 0)
    for (idx j = 0; j < ATTENTION_BLOCK; j += F32_LANES)
      f32_store(u + j, f32_tanh(f32_load(u + j) * f32_splat(t->factors.inner)));
  for (idx j = 0; j < from; j++) u[j] = -INFINITY;
  for (idx j = end; j < ATTENTION_BLOCK; j++) u[j] = -INFINITY;
  float m = attention_largest(u) * t->factors.exponent, old = t->m[r];
  if (old != old || old > m) m = old;
  float shrink = f32_exp2_one(old - m), *acc = t->acc + (gidx)r * t->stride;
  t->m[r] = m;
  if (shrink != 1) {
    t->l[r] *= shrink;
    for (idx c = 0; c < t->stride; c += F32_LANES) f32_store(acc + c, f32_load(acc + c) * shrink);
  }
  for (idx j = 0; j < ATTENTION_BLOCK; j += F32_LANES)
    f32_store(u + j,
              f32_exp2(f32_fma(f32_load(u + j), f32_splat(t->factors.exponent), f32_splat(-m))));
}

/* The positions of a block that each row sees, and those that all rows of the tile see. */
struct attention_range {
  idx from[ATTENTION_ROWS], end[ATTENTION_ROWS]; /* from >= end: nothing */
  idx all_from, all_end;
};

/* Returns 1 if any row sees a position of block b. */
ALWAYS_INLINE int attention_ranges(const struct attention_tile *t, idx b, struct attention_range *g)
{
  int any = 0;
  g->all_from = 0, g->all_end = ATTENTION_BLOCK;
  for (int r = 0; r < ATTENTION_ROWS; r++) {
    idx from = t->from[r] - b * ATTENTION_BLOCK, end = t->end[r] - b * ATTENTION_BLOCK;
    g->from[r] = from > 0 ? from : 0;
    g->end[r] = end < ATTENTION_BLOCK ? end : ATTENTION_BLOCK;
    any |= g->from[r] < g->end[r];
    if (g->from[r] > g->all_from) g->all_from = g->from[r];
    if (g->end[r] < g->all_end) g->all_end = g->end[r];
  }
  return any;
}

/* Add the values of positions from .. end - 1 of a block to acc, for one row. */
ALWAYS_INLINE void attention_values_one(struct attention_tile *t, idx r, const float *p,
                                        const float *v, idx from, idx end)
{
  if (from < end)
    attention_one(p + from, end - from, v + (gidx)from * t->stride, t->stride, t->stride,
                  t->acc + (gidx)r * t->stride);
}

/* Add the values of a block to acc.  Positions that all rows see are added for all rows at once. */
ALWAYS_INLINE void attention_values(struct attention_tile *t, const struct attention_range *g,
                                    float (*p)[ATTENTION_BLOCK], const float *v)
{
  idx from = g->all_from, end = g->all_end;
  int together = from < end;
  for (int r = 0; r < ATTENTION_ROWS; r++)
    attention_values_one(t, r, p[r], v, g->from[r], together ? from : g->end[r]);
  if (!together) return;
  attention_rows(p[0] + from, ATTENTION_BLOCK, end - from, v + (gidx)from * t->stride, t->stride,
                 t->stride, t->acc, t->stride);
  for (int r = 0; r < ATTENTION_ROWS; r++) attention_values_one(t, r, p[r], v, end, g->end[r]);
}

/* Add the weights of a block to l, one chain per row.  The chains of the rows run side by side,
 * since each addition waits for the one before it. */
ALWAYS_INLINE void attention_lengths(struct attention_tile *t, const struct attention_range *g,
                                     float (*p)[ATTENTION_BLOCK])
{
  if (g->all_from == 0 && g->all_end == ATTENTION_BLOCK) {
    float l[ATTENTION_ROWS];
    memcpy(l, t->l, sizeof l);
    for (idx j = 0; j < ATTENTION_BLOCK; j++)
      for (int r = 0; r < ATTENTION_ROWS; r++) l[r] += p[r][j];
    memcpy(t->l, l, sizeof l);
    return;
  }
  for (int r = 0; r < ATTENTION_ROWS; r++)
    for (idx j = g->from[r]; j < g->end[r]; j++) t->l[r] += p[r][j];
}

static void attention_tile_run(struct attention_tile *t)
{
  struct attention_range g;
  _Alignas(64) float u[ATTENTION_ROWS][ATTENTION_BLOCK];
  idx last = 0;
  for (int r = 0; r < ATTENTION_ROWS; r++) {
    t->m[r] = -INFINITY, t->l[r] = 0;
    if (t->end[r] > last) last = t->end[r];
  }
  memset(t->acc, 0, sizeof *t->acc * (size_t)ATTENTION_ROWS * (size_t)t->stride);
  for (idx b = 0; b * ATTENTION_BLOCK < last; b++) {
    if (!attention_ranges(t, b, &g)) continue;
    attention_inner(ATTENTION_ROWS, t->q, t->d, t->k + (gidx)b * t->d * ATTENTION_BLOCK, u[0]);
    for (int r = 0; r < ATTENTION_ROWS; r++)
      if (g.from[r] < g.end[r]) attention_weights(t, r, g.from[r], g.end[r], u[r]);
    attention_lengths(t, &g, u);
    attention_values(t, &g, u, t->v + (gidx)b * ATTENTION_BLOCK * t->stride);
  }
}

static void attention_join(idx stride, struct attention_sum *s, const struct attention_sum *more)
{
  float m = s->m != s->m || s->m > more->m ? s->m : more->m;
  float own = f32_exp2_one(s->m - m), other = f32_exp2_one(more->m - m);
  s->m = m;
  s->l = f32_fma(f32_splat(more->l), f32_splat(other), f32_splat(s->l * own))[0];
  for (idx c = 0; c < stride; c += F32_LANES)
    f32_store(s->acc + c,
              f32_fma(f32_load(more->acc + c), f32_splat(other), f32_load(s->acc + c) * own));
}

static void attention_powers(const struct attention_factors *factors, idx d, const float *q,
                             const float *k, float m, float *w)
{
  _Alignas(64) float u[ATTENTION_BLOCK];
  attention_inner(1, q, d, k, u);
  for (idx j = 0; j < ATTENTION_BLOCK; j += F32_LANES) {
    f32v x = f32_load(u + j);
    if (factors->inner != 0) x = f32_tanh(x * f32_splat(factors->inner));
    f32_store(w + j, f32_exp2(f32_fma(x, f32_splat(factors->exponent), f32_splat(-m))));
  }
}

/* Products of two f32 are exact in f64, so an fma rounds as a sum does. */
static void attention_products(idx dv, const float *atom, const float *v, real *out)
{
  enum { VECTORS = 32 / F64_LANES };
  for (idx j = 0; j < ATTENTION_BLOCK; j += 32) {
    f64v sum[VECTORS];
#pragma GCC unroll 16
    for (int x = 0; x < VECTORS; x++) sum[x] = f64_splat(0);
    for (idx c = 0; c < dv; c++) {
      f64v factor = f64_splat(atom[c]);
#pragma GCC unroll 16
      for (int x = 0; x < VECTORS; x++)
        sum[x] =
            f64_fma(f64_widen(v + (gidx)c * ATTENTION_BLOCK + j + x * F64_LANES), factor, sum[x]);
    }
#pragma GCC unroll 16
    for (int x = 0; x < VECTORS; x++) f64_store(out + j + x * F64_LANES, sum[x]);
  }
}

static const struct attention_loops attention_table = {
    .tile = attention_tile_run,
    .join = attention_join,
    .weights = attention_powers,
    .products = attention_products,
};
