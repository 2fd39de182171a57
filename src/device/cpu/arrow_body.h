/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the arrow systems, for any vector width.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h and after it has defined
 *   ARROW_TILE  the most columns of a tile of T (N.9).
 *
 * Lanes are rows of a system.  No chain crosses lanes, so the vector width does not change a
 * bit. */
#include <float.h>
#include <string.h>

#include "device/cpu/arrow_loops.h"

/* The number type of arrow_row.h: here each lane holds the number of another row. */
typedef f64v val;
#define VAL_FMA(a, b, c) f64_fma(a, b, c)
#define VAL_SQRT(x) f64_sqrt(x)
#include "device/cpu/arrow_row.h"

enum { ARROW_VECTORS = LANE_COUNT / F64_LANES, ARROW_MAX_TILE = 4 };

ALWAYS_INLINE f64v f64_choose(i64v m, f64v yes, f64v no)
{
  return (f64v)((m & (i64v)yes) | (~m & (i64v)no));
}

/* A mask of lanes 0 .. count - 1. */
ALWAYS_INLINE i64v i64_below(idx count)
{
  long long lane[F64_LANES];
  i64v m;
  for (int i = 0; i < F64_LANES; i++) lane[i] = i < count ? -1 : 0;
  memcpy(&m, lane, sizeof m);
  return m;
}

ALWAYS_INLINE int i64_any(i64v m)
{
  long long lane[F64_LANES], all = 0;
  memcpy(lane, &m, sizeof m);
  for (int i = 0; i < F64_LANES; i++) all |= lane[i];
  return all != 0;
}

/* The group of the panel that begins with row `row`.  A group is F64_LANES rows (arrow_loops.h). */
ALWAYS_INLINE f64v *arrow_group_at(const struct arrow_rows *r, idx row)
{
  gidx size = arrow_group(r->system->d, r->system->k) * F64_LANES;
  return (f64v *)(void *)(r->panel + row / F64_LANES * size);
}

/* The number of rows that exist in the group that begins with row `row`. */
ALWAYS_INLINE idx arrow_group_rows(const struct arrow_rows *r, idx row)
{
  return r->count - row < F64_LANES ? r->count - row : F64_LANES;
}

/* out[count] <- F64_LANES rows of `count` numbers each, transposed: lane i has the numbers of row
 * i.  Up to three numbers past the last may be read. */
ALWAYS_INLINE void arrow_transpose_rows(const real *from, idx count, f64v *out)
{
  idx e = 0;
  f64v last[4];
  if (count == 1) {
    out[0] = f64_load(from);
    return;
  }
  for (; e + 4 <= count; e += 4) f64_transpose(from + e, count, out + e);
  if (e == count) return;
  f64_transpose(from + e, count, last);
  for (idx i = 0; e + i < count; i++) out[e + i] = last[i];
}

/* The same near the end of an array, where only `rows` rows exist; missing rows become zeros. */
static void arrow_transpose_tail(const real *from, idx count, idx rows, real *work, f64v *out)
{
  size_t have = (size_t)rows * (size_t)count, all = (size_t)F64_LANES * (size_t)count + 4;
  memcpy(work, from, have * sizeof *work);
  memset(work + have, 0, (all - have) * sizeof *work);
  arrow_transpose_rows(work, count, out);
}

/* The processor does not predict the strides in which rows are read, so rows are prefetched AHEAD
 * groups ahead.  A prefetch past the end of the system is harmless; usually the next system follows
 * there. */
enum { AHEAD = 3 };
ALWAYS_INLINE void arrow_prefetch(const real *from, gidx reals)
{
  for (gidx i = 0; i < reals; i += 8) __builtin_prefetch(from + i, 0, 3);
}

ALWAYS_INLINE void arrow_group_load(const int d, const struct arrow_rows *r, idx row, f64v *group,
                                    f64v *h)
{
  const struct arrow_system *s = r->system;
  gidx i = r->first + row;
  idx k = s->k, rows = arrow_group_rows(r, row);
  f64v *u = group + (gidx)k * d;
  gidx ahead = i + AHEAD * F64_LANES;
  arrow_prefetch(s->b + ahead * d * k, (gidx)F64_LANES * d * k);
  arrow_prefetch(s->h + ahead * d * d, F64_LANES * d * d);
  arrow_prefetch(s->g + ahead * d, F64_LANES * d);
  if (i + F64_LANES + 3 <= s->n && rows == F64_LANES) {
    arrow_transpose_rows(s->h + i * d * d, d * d, h);
    arrow_transpose_rows(s->g + i * d, d, u);
    arrow_transpose_rows(s->b + i * d * k, d * k, group);
    return;
  }
  arrow_transpose_tail(s->h + i * d * d, d * d, rows, r->tail, h);
  arrow_transpose_tail(s->g + i * d, d, rows, r->tail, u);
  if (k > 0) arrow_transpose_tail(s->b + i * d * k, d * k, rows, r->tail, group);
}

/* Multiply the determinant pairs of the `valid` lanes by a pivot (N.13); returns the lanes whose
 * pivot is bad. */
ALWAYS_INLINE i64v arrow_pairs_multiply(f64v p, i64v valid, f64v *m, i64v *e)
{
  const i64v significand = (i64v){0} + 0xfffffffffffffll, half = (i64v)f64_splat(0.5);
  i64v good = (p > 0) & (p <= DBL_MAX), tiny = p < DBL_MIN;
  i64v bits = (i64v)f64_choose(tiny, p * 0x1p54, p);
  f64v product = *m * (f64v)((bits & significand) | half);
  i64v small = product < 0.5;
  i64v exponent = *e + (bits >> 52) - 1022 - (tiny & 54) + small;
  *m = f64_choose(valid, f64_choose(small, product + product, product), *m);
  *e = (valid & exponent) | (~valid & *e);
  return ~good & valid;
}

/* Whiten one group: H, B, g <- L, Y, u. */
ALWAYS_INLINE void arrow_group_whiten(const int d, const struct arrow_rows *r, idx row,
                                      struct arrow_pairs *pairs, i64v *bad)
{
  idx k = r->system->k, lane = row % LANE_COUNT;
  f64v *group = arrow_group_at(r, row), *columns = group, *factor = group + (gidx)(k + 1) * d;
  f64v h[ARROW_MAX_D * ARROW_MAX_D], l[ARROW_MAX_D * (ARROW_MAX_D + 1) / 2];
  f64v pivot[ARROW_MAX_D], m = f64_load(pairs->m + lane);
  i64v e, valid = i64_below(arrow_group_rows(r, row));
  memcpy(&e, pairs->e + lane, sizeof e);
  arrow_group_load(d, r, row, group, h);
  BODY_UNROLL
  for (int j = 0; j < d; j++) {
    BODY_UNROLL
    for (int i = j; i < d; i++) l[ARROW_AT(d, i, j)] = h[j * d + i];
    l[ARROW_AT(d, j, j)] = f64_choose(valid, l[ARROW_AT(d, j, j)] + r->ridge_t, f64_splat(1));
  }
  arrow_row_factor(d, l, pivot);
  BODY_UNROLL
  for (int i = 0; i < d; i++) *bad |= arrow_pairs_multiply(pivot[i], valid, &m, &e);
  f64_store(pairs->m + lane, m);
  memcpy(pairs->e + lane, &e, sizeof e);
  for (idx j = 0; j <= k; j++) arrow_row_forward(d, l, columns + (gidx)j * d);
  BODY_UNROLL
  for (int i = 0; i < d * (d + 1) / 2; i++) factor[i] = l[i];
}

ALWAYS_INLINE void arrow_chunk_whiten(const int d, const struct arrow_rows *r,
                                      struct arrow_pairs *pairs)
{
  i64v bad = {0};
  for (idx round = 0; round < r->count; round += LANE_COUNT)
    for (idx lane = r->lane_begin; lane < r->lane_end && round + lane < r->count; lane += F64_LANES)
      arrow_group_whiten(d, r, round + lane, pairs, &bad);
  pairs->bad |= i64_any(bad);
}

/* The steps of (N.11) of one group, written to its rows of step_t. */
ALWAYS_INLINE void arrow_group_step(const int d, const struct arrow_rows *r, idx row,
                                    const real *step_b, real *step_t)
{
  idx k = r->system->k, rows = arrow_group_rows(r, row);
  const f64v *group = arrow_group_at(r, row);
  real out[ARROW_MAX_D][F64_LANES];
  f64v v[ARROW_MAX_D];
  BODY_UNROLL
  for (int m = 0; m < d; m++) v[m] = group[(gidx)k * d + m];
  for (idx j = 0; j < k; j++) {
    f64v b = f64_splat(step_b[j]);
    BODY_UNROLL
    for (int m = 0; m < d; m++) v[m] = f64_fma(group[(gidx)j * d + m], b, v[m]);
  }
  arrow_row_back(d, group + (gidx)(k + 1) * d, v);
  BODY_UNROLL
  for (int m = 0; m < d; m++) {
    const i64v nan = (i64v){0} + 0x7ff8000000000000ll;
    f64_store(out[m], f64_choose(v[m] == v[m], -v[m], (f64v)nan));
  }
  step_t += (r->first + row) * d;
  for (idx i = 0; i < rows; i++) {
    BODY_UNROLL
    for (int m = 0; m < d; m++) step_t[i * d + m] = out[m][i];
  }
}

ALWAYS_INLINE void arrow_chunk_steps(const int d, const struct arrow_rows *r, const real *step_b,
                                     real *step_t)
{
  for (idx round = 0; round < r->count; round += LANE_COUNT)
    for (idx lane = r->lane_begin; lane < r->lane_end && round + lane < r->count; lane += F64_LANES)
      arrow_group_step(d, r, round + lane, step_b, step_t);
}

/* One function for each d, so that d is a constant when its loops are compiled. */
#define EACH_D(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define WITH_D(D)                                                                                  \
  static void whiten_##D(const struct arrow_rows *r, struct arrow_pairs *pairs)                    \
  {                                                                                                \
    arrow_chunk_whiten(D, r, pairs);                                                               \
  }                                                                                                \
  static void steps_##D(const struct arrow_rows *r, const real *step_b, real *step_t)              \
  {                                                                                                \
    arrow_chunk_steps(D, r, step_b, step_t);                                                       \
  }
EACH_D(WITH_D)

static void arrow_whiten(const struct arrow_rows *r, struct arrow_pairs *pairs)
{
#define WHITEN(D) whiten_##D,
  static void (*const by_d[])(const struct arrow_rows *, struct arrow_pairs *) = {EACH_D(WHITEN)};
  by_d[r->system->d - 1](r, pairs);
}

static void arrow_steps(const struct arrow_rows *r, const real *step_b, real *step_t)
{
#define STEPS(D) steps_##D,
  static void (*const by_d[])(const struct arrow_rows *, const real *, real *) = {EACH_D(STEPS)};
  by_d[r->system->d - 1](r, step_b, step_t);
}

/* Products of the columns from a0 on with the columns from b0 on of the extended Y (arrow_loops.h),
 * summed over the rounds of one vector.  A round is 32 rows; the vector has F64_LANES of them. */
struct tile {
  const f64v *a, *b; /* columns a0 and b0 in the first round */
  gidx stride;       /* vectors between rounds */
  idx rounds, d;
  i64v valid; /* lanes that have a row in the partial round at the end; all 0: there is none */
  int is_partial, is_first;
  idx a0, b0;
  real *sums; /* the sums of the vector's first lane */
};

ALWAYS_INLINE real *arrow_sum_at(const struct tile *t, idx a, idx b)
{
  gidx i = t->a0 + a;
  return t->sums + (i * (i + 1) / 2 + t->b0 + b) * LANE_COUNT;
}

/* is_diagonal: a and b are the same columns, so only pairs a >= b are computed. */
ALWAYS_INLINE void arrow_tile_add(const struct tile *t, const int na, const int nb,
                                  const int is_diagonal)
{
  f64v s[ARROW_MAX_TILE][ARROW_MAX_TILE];
  const f64v *ya = t->a, *yb = t->b;
  idx d = t->d;
#define EACH_SUM                                                                                   \
  BODY_UNROLL                                                                                      \
  for (int a = 0; a < na; a++) BODY_UNROLL                                                         \
  for (int b = 0; b < nb; b++)                                                                     \
    if (b <= a || !is_diagonal)
  EACH_SUM s[a][b] = t->is_first ? f64_splat(0) : f64_load(arrow_sum_at(t, a, b));
  for (idx r = 0; r < t->rounds; r++, ya += t->stride, yb += t->stride)
    for (idx m = 0; m < d; m++) {
      EACH_SUM s[a][b] = f64_fma(ya[a * d + m], yb[b * d + m], s[a][b]);
    }
  for (idx m = 0; t->is_partial && m < d; m++) {
    EACH_SUM s[a][b] =
        f64_choose(t->valid, f64_fma(ya[a * d + m], yb[b * d + m], s[a][b]), s[a][b]);
  }
  EACH_SUM f64_store(arrow_sum_at(t, a, b), s[a][b]);
}

#define TILES(NA)                                                                                  \
  static void tile_##NA##_1(const struct tile *t)                                                  \
  {                                                                                                \
    arrow_tile_add(t, NA, 1, 0);                                                                   \
  }                                                                                                \
  static void tile_##NA##_2(const struct tile *t)                                                  \
  {                                                                                                \
    arrow_tile_add(t, NA, 2, 0);                                                                   \
  }                                                                                                \
  static void tile_##NA##_3(const struct tile *t)                                                  \
  {                                                                                                \
    arrow_tile_add(t, NA, 3, 0);                                                                   \
  }                                                                                                \
  static void tile_##NA##_4(const struct tile *t)                                                  \
  {                                                                                                \
    arrow_tile_add(t, NA, 4, 0);                                                                   \
  }                                                                                                \
  static void tile_##NA##_self(const struct tile *t)                                               \
  {                                                                                                \
    arrow_tile_add(t, NA, NA, 1);                                                                  \
  }
TILES(1)
TILES(2)
TILES(3)
TILES(4)

static void arrow_tile_run(const struct tile *t, idx na, idx nb)
{
#define ROW(NA)                                                                                    \
  {                                                                                                \
    tile_##NA##_1, tile_##NA##_2, tile_##NA##_3, tile_##NA##_4                                     \
  }
  static void (*const full[4][4])(const struct tile *) = {ROW(1), ROW(2), ROW(3), ROW(4)};
  static void (*const self[4])(const struct tile *) = {tile_1_self, tile_2_self, tile_3_self,
                                                       tile_4_self};
  if (t->a0 == t->b0)
    self[na - 1](t);
  else
    full[na - 1][nb - 1](t);
}

/* Add all tiles for the rounds of one vector.  Columns are divided into blocks of nearly equal
 * width. */
static void arrow_vector_accumulate(const struct arrow_rows *r, idx lane, struct tile *t)
{
  idx d = r->system->d, columns = r->system->k + 1,
      blocks = (columns + ARROW_TILE - 1) / ARROW_TILE;
  const f64v *group = arrow_group_at(r, lane);
  idx left = r->count - lane;
  t->rounds = left >= F64_LANES ? (left - F64_LANES) / LANE_COUNT + 1 : 0;
  idx more = left - t->rounds * LANE_COUNT;
  t->is_partial = more > 0;
  t->valid = i64_below(more > 0 ? more : 0);
  for (idx i = 0; i < blocks; i++)
    for (idx j = 0; j <= i; j++) {
      t->a0 = (idx)((gidx)i * columns / blocks);
      t->b0 = (idx)((gidx)j * columns / blocks);
      t->a = group + (gidx)t->a0 * d;
      t->b = group + (gidx)t->b0 * d;
      arrow_tile_run(t, (idx)((gidx)(i + 1) * columns / blocks) - t->a0,
                     (idx)((gidx)(j + 1) * columns / blocks) - t->b0);
    }
}

static void arrow_accumulate(const struct arrow_rows *r, int is_first, real *sums)
{
  struct tile t = {.d = r->system->d, .is_first = is_first};
  t.stride = arrow_group(r->system->d, r->system->k) * ARROW_VECTORS;
  for (idx lane = r->lane_begin; lane < r->lane_end && lane < r->count; lane += F64_LANES) {
    t.sums = sums + lane;
    arrow_vector_accumulate(r, lane, &t);
  }
}

static void arrow_fold(const real *sums, gidx n, idx used, real *out)
{
  for (gidx e = 0; e < n; e++, sums += LANE_COUNT) {
    f64v x[ARROW_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < ARROW_VECTORS; v++)
      x[v] = v * F64_LANES < used ? f64_load(sums + v * F64_LANES) : f64_splat(0);
#pragma GCC unroll 8
    for (int half = ARROW_VECTORS / 2; half >= 1; half /= 2) {
#pragma GCC unroll 8
      for (int v = 0; v < half; v++) x[v] += x[v + half];
    }
    out[e] = f64_sum(x[0]);
  }
}

/* Factors column after column.  All earlier columns are subtracted from a column, one vector of
 * rows at a time. */
static idx arrow_border_factor(real *s, idx k, idx stride, real *pivot)
{
  for (idx j = 0; j < k; j++) {
    real *column = s + (gidx)j * stride;
    for (idx i = j / F64_LANES * F64_LANES; i < k; i += F64_LANES) {
      f64v acc = f64_load(column + i);
      for (idx p = 0; p < j; p++)
        acc = f64_fma(f64_load(s + (gidx)p * stride + i), f64_splat(-s[(gidx)p * stride + j]), acc);
      f64_store(column + i, acc);
    }
    pivot[j] = column[j];
    if (!(pivot[j] > 0 && pivot[j] <= DBL_MAX)) return j;
    f64v root = f64_sqrt(f64_splat(pivot[j]));
    for (idx i = j / F64_LANES * F64_LANES; i < k; i += F64_LANES)
      f64_store(column + i, f64_load(column + i) / root);
    column[j] = root[0];
  }
  return -1;
}

static void arrow_border_solve(const real *l, idx k, idx stride, real *x)
{
  for (idx j = 0; j < k; j++) {
    const real *column = l + (gidx)j * stride;
    real y = x[j] / column[j];
    idx i = j + 1;
    for (; i < k && i % F64_LANES; i++) x[i] = __builtin_fma(column[i], -y, x[i]);
    for (; i < k; i += F64_LANES)
      f64_store(x + i, f64_fma(f64_load(column + i), f64_splat(-y), f64_load(x + i)));
    x[j] = y;
  }
  for (idx i = k - 1; i >= 0; i--) {
    x[i] = x[i] / l[(gidx)i * stride + i];
    for (idx p = 0; p < i; p++) x[p] = __builtin_fma(-l[(gidx)p * stride + i], x[i], x[p]);
  }
}

static const struct arrow_loops arrow_table = {
    .whiten = arrow_whiten,
    .accumulate = arrow_accumulate,
    .fold = arrow_fold,
    .border_factor = arrow_border_factor,
    .border_solve = arrow_border_solve,
    .steps = arrow_steps,
};
