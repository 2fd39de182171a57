/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the arrow systems, for any vector width.
 *
 * Floor: device.  Included once by each arrow_<variant>.c, which defines
 *   ARROW_TABLE       the table's name,
 *   LANES, val, mask  doubles a vector; vectors of as many doubles and 64-bit integers,
 *   TILE              most columns of a tile of T,
 *   turn(), within()  a transposition, a sum inside a vector,
 *   VAL_FMA, VAL_SQRT for kernels/arrow_body.h.
 *
 * A chain never runs along a vector, so the width does not change a bit. */
#include "arrow_body.h"

#include <float.h>
#include <string.h>

#include "device/cpu_arrow.h"

enum { VECTORS = LANE_COUNT / LANES, TILE_MOST = 4 };

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS val splat(real x)
{
  return x - (val){0};
}

ALWAYS val load(const real *from)
{
  val v;
  memcpy(&v, from, sizeof v);
  return v;
}

ALWAYS void store(real *to, val v)
{
  memcpy(to, &v, sizeof v);
}

ALWAYS val choose(mask m, val yes, val no)
{
  return (val)((m & (mask)yes) | (~m & (mask)no));
}

/* Lanes 0 .. count - 1. */
ALWAYS mask lanes_below(idx count)
{
  long long lane[LANES];
  mask m;
  for (int i = 0; i < LANES; i++) lane[i] = i < count ? -1 : 0;
  memcpy(&m, lane, sizeof m);
  return m;
}

ALWAYS int any(mask m)
{
  long long lane[LANES], all = 0;
  memcpy(lane, &m, sizeof m);
  for (int i = 0; i < LANES; i++) all |= lane[i];
  return all != 0;
}

/* The group of a chunk that begins with its row `row`. */
ALWAYS val *group_at(const struct arrow_rows *r, idx row)
{
  gidx size = arrow_group(r->system->d, r->system->k) * LANES;
  return (val *)(void *)(r->panel + row / LANES * size);
}

/* Rows of the group that are there. */
ALWAYS idx group_rows(const struct arrow_rows *r, idx row)
{
  return r->count - row < LANES ? r->count - row : LANES;
}

/* out[count] <- the numbers of LANES rows, `count` each, one after another; three numbers past the
 * last may be read. */
ALWAYS void turn_rows(const real *from, idx count, val *out)
{
  idx e = 0;
  val last[4];
  if (count == 1) {
    out[0] = load(from);
    return;
  }
  for (; e + 4 <= count; e += 4) turn(from + e, count, out + e);
  if (e == count) return;
  turn(from + e, count, last);
  for (idx i = 0; e + i < count; i++) out[e + i] = last[i];
}

/* The same near the end of an array, where only `rows` rows are left; those that lack are zeros. */
static void turn_tail(const real *from, idx count, idx rows, real *work, val *out)
{
  size_t have = (size_t)rows * (size_t)count, all = (size_t)LANES * (size_t)count + 4;
  memcpy(work, from, have * sizeof *work);
  memset(work + have, 0, (all - have) * sizeof *work);
  turn_rows(work, count, out);
}

/* Rows come from memory in strides that the processor does not foresee: ask for them, a few
 * groups ahead.  Past the end stands the next system, usually; asking for what is not there harms
 * nothing. */
enum { AHEAD = 3 };
ALWAYS void prefetch(const real *from, gidx reals)
{
  for (gidx i = 0; i < reals; i += 8) __builtin_prefetch(from + i, 0, 3);
}

ALWAYS void group_load(const int d, const struct arrow_rows *r, idx row, val *group, val *h)
{
  const struct arrow_system *s = r->system;
  gidx i = r->first + row;
  idx k = s->k, rows = group_rows(r, row);
  val *u = group + (gidx)k * d;
  gidx ahead = i + AHEAD * LANES;
  prefetch(s->b + ahead * d * k, (gidx)LANES * d * k);
  prefetch(s->h + ahead * d * d, LANES * d * d);
  prefetch(s->g + ahead * d, LANES * d);
  if (i + LANES + 3 <= s->n && rows == LANES) {
    turn_rows(s->h + i * d * d, d * d, h);
    turn_rows(s->g + i * d, d, u);
    turn_rows(s->b + i * d * k, d * k, group);
    return;
  }
  turn_tail(s->h + i * d * d, d * d, rows, r->tail, h);
  turn_tail(s->g + i * d, d, rows, r->tail, u);
  if (k > 0) turn_tail(s->b + i * d * k, d * k, rows, r->tail, group);
}

/* Multiply the pairs of `valid` lanes by a pivot (N.13); returns lanes of bad pivots. */
ALWAYS mask pairs_multiply(val p, mask valid, val *m, mask *e)
{
  const mask significand = (mask){0} + 0xfffffffffffffll, half = (mask)splat(0.5);
  mask good = (p > 0) & (p <= DBL_MAX), tiny = p < DBL_MIN;
  mask bits = (mask)choose(tiny, p * 0x1p54, p);
  val product = *m * (val)((bits & significand) | half);
  mask small = product < 0.5;
  mask exponent = *e + (bits >> 52) - 1022 - (tiny & 54) + small;
  *m = choose(valid, choose(small, product + product, product), *m);
  *e = (valid & exponent) | (~valid & *e);
  return ~good & valid;
}

/* One group: H, B, g <- L, Y, u. */
ALWAYS void group_whiten(const int d, const struct arrow_rows *r, idx row,
                         struct arrow_pairs *pairs, mask *bad)
{
  idx k = r->system->k, lane = row % LANE_COUNT;
  val *group = group_at(r, row), *columns = group, *factor = group + (gidx)(k + 1) * d;
  val h[ARROW_ROW_MOST * ARROW_ROW_MOST], l[ARROW_ROW_MOST * (ARROW_ROW_MOST + 1) / 2];
  val pivot[ARROW_ROW_MOST], m = load(pairs->m + lane);
  mask e, valid = lanes_below(group_rows(r, row));
  memcpy(&e, pairs->e + lane, sizeof e);
  group_load(d, r, row, group, h);
  BODY_UNROLL
  for (int j = 0; j < d; j++) {
    BODY_UNROLL
    for (int i = j; i < d; i++) l[ARROW_AT(d, i, j)] = h[j * d + i];
    l[ARROW_AT(d, j, j)] = choose(valid, l[ARROW_AT(d, j, j)] + r->ridge_t, splat(1));
  }
  arrow_row_factor(d, l, pivot);
  BODY_UNROLL
  for (int i = 0; i < d; i++) *bad |= pairs_multiply(pivot[i], valid, &m, &e);
  store(pairs->m + lane, m);
  memcpy(pairs->e + lane, &e, sizeof e);
  for (idx j = 0; j <= k; j++) arrow_row_forward(d, l, columns + (gidx)j * d);
  BODY_UNROLL
  for (int i = 0; i < d * (d + 1) / 2; i++) factor[i] = l[i];
}

ALWAYS void chunk_whiten(const int d, const struct arrow_rows *r, struct arrow_pairs *pairs)
{
  mask bad = {0};
  for (idx round = 0; round < r->count; round += LANE_COUNT)
    for (idx lane = r->lane_begin; lane < r->lane_end && round + lane < r->count; lane += LANES)
      group_whiten(d, r, round + lane, pairs, &bad);
  pairs->bad |= any(bad);
}

/* One group's part of (N.11), to rows of step_t. */
ALWAYS void group_step(const int d, const struct arrow_rows *r, idx row, const real *step_b,
                       real *step_t)
{
  idx k = r->system->k, rows = group_rows(r, row);
  const val *group = group_at(r, row);
  real out[ARROW_ROW_MOST][LANES];
  val v[ARROW_ROW_MOST];
  BODY_UNROLL
  for (int m = 0; m < d; m++) v[m] = group[(gidx)k * d + m];
  for (idx j = 0; j < k; j++) {
    val b = splat(step_b[j]);
    BODY_UNROLL
    for (int m = 0; m < d; m++) v[m] = VAL_FMA(group[(gidx)j * d + m], b, v[m]);
  }
  arrow_row_back(d, group + (gidx)(k + 1) * d, v);
  BODY_UNROLL
  for (int m = 0; m < d; m++) {
    const mask nan = (mask){0} + 0x7ff8000000000000ll;
    store(out[m], choose(v[m] == v[m], -v[m], (val)nan));
  }
  step_t += (r->first + row) * d;
  for (idx i = 0; i < rows; i++) {
    BODY_UNROLL
    for (int m = 0; m < d; m++) step_t[i * d + m] = out[m][i];
  }
}

ALWAYS void chunk_steps(const int d, const struct arrow_rows *r, const real *step_b, real *step_t)
{
  for (idx round = 0; round < r->count; round += LANE_COUNT)
    for (idx lane = r->lane_begin; lane < r->lane_end && round + lane < r->count; lane += LANES)
      group_step(d, r, round + lane, step_b, step_t);
}

/* A block of d is known when it is compiled. */
#define EACH_D(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define WITH_D(D)                                                                                  \
  static void whiten_##D(const struct arrow_rows *r, struct arrow_pairs *pairs)                    \
  {                                                                                                \
    chunk_whiten(D, r, pairs);                                                                     \
  }                                                                                                \
  static void steps_##D(const struct arrow_rows *r, const real *step_b, real *step_t)              \
  {                                                                                                \
    chunk_steps(D, r, step_b, step_t);                                                             \
  }
EACH_D(WITH_D)

static void whiten(const struct arrow_rows *r, struct arrow_pairs *pairs)
{
#define WHITEN(D) whiten_##D,
  static void (*const by_d[])(const struct arrow_rows *, struct arrow_pairs *) = {EACH_D(WHITEN)};
  by_d[r->system->d - 1](r, pairs);
}

static void steps(const struct arrow_rows *r, const real *step_b, real *step_t)
{
#define STEPS(D) steps_##D,
  static void (*const by_d[])(const struct arrow_rows *, const real *, real *) = {EACH_D(STEPS)};
  by_d[r->system->d - 1](r, step_b, step_t);
}

/* Columns a0 .. and b0 .. of the extended Y, times each other, over the rounds of one vector. */
struct tile {
  const val *a, *b; /* of the first round */
  gidx stride;      /* vectors from round to round */
  idx rounds, d;
  mask valid; /* of one round more; all 0: there is none */
  int is_partial, is_first;
  idx a0, b0;
  real *sums; /* of this vector's first lane */
};

ALWAYS real *sum_at(const struct tile *t, idx a, idx b)
{
  gidx i = t->a0 + a;
  return t->sums + (i * (i + 1) / 2 + t->b0 + b) * LANE_COUNT;
}

/* is_diagonal: a and b are the same columns, and only pairs a >= b are wanted. */
ALWAYS void tile_add(const struct tile *t, const int na, const int nb, const int is_diagonal)
{
  val s[TILE_MOST][TILE_MOST];
  const val *ya = t->a, *yb = t->b;
  idx d = t->d;
#define EACH_SUM                                                                                   \
  BODY_UNROLL                                                                                      \
  for (int a = 0; a < na; a++) BODY_UNROLL                                                         \
  for (int b = 0; b < nb; b++)                                                                     \
    if (b <= a || !is_diagonal)
  EACH_SUM s[a][b] = t->is_first ? splat(0) : load(sum_at(t, a, b));
  for (idx r = 0; r < t->rounds; r++, ya += t->stride, yb += t->stride)
    for (idx m = 0; m < d; m++) {
      EACH_SUM s[a][b] = VAL_FMA(ya[a * d + m], yb[b * d + m], s[a][b]);
    }
  for (idx m = 0; t->is_partial && m < d; m++) {
    EACH_SUM s[a][b] = choose(t->valid, VAL_FMA(ya[a * d + m], yb[b * d + m], s[a][b]), s[a][b]);
  }
  EACH_SUM store(sum_at(t, a, b), s[a][b]);
}

#define TILES(NA)                                                                                  \
  static void tile_##NA##_1(const struct tile *t)                                                  \
  {                                                                                                \
    tile_add(t, NA, 1, 0);                                                                         \
  }                                                                                                \
  static void tile_##NA##_2(const struct tile *t)                                                  \
  {                                                                                                \
    tile_add(t, NA, 2, 0);                                                                         \
  }                                                                                                \
  static void tile_##NA##_3(const struct tile *t)                                                  \
  {                                                                                                \
    tile_add(t, NA, 3, 0);                                                                         \
  }                                                                                                \
  static void tile_##NA##_4(const struct tile *t)                                                  \
  {                                                                                                \
    tile_add(t, NA, 4, 0);                                                                         \
  }                                                                                                \
  static void tile_##NA##_self(const struct tile *t)                                               \
  {                                                                                                \
    tile_add(t, NA, NA, 1);                                                                        \
  }
TILES(1)
TILES(2)
TILES(3)
TILES(4)

static void tile_run(const struct tile *t, idx na, idx nb)
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

/* All tiles over the rounds of one vector; columns are cut in blocks of nearly equal width. */
static void vector_accumulate(const struct arrow_rows *r, idx lane, struct tile *t)
{
  idx d = r->system->d, columns = r->system->k + 1, blocks = (columns + TILE - 1) / TILE;
  const val *group = group_at(r, lane);
  idx left = r->count - lane;
  t->rounds = left >= LANES ? (left - LANES) / LANE_COUNT + 1 : 0;
  idx more = left - t->rounds * LANE_COUNT;
  t->is_partial = more > 0;
  t->valid = lanes_below(more > 0 ? more : 0);
  for (idx i = 0; i < blocks; i++)
    for (idx j = 0; j <= i; j++) {
      t->a0 = (idx)((gidx)i * columns / blocks);
      t->b0 = (idx)((gidx)j * columns / blocks);
      t->a = group + (gidx)t->a0 * d;
      t->b = group + (gidx)t->b0 * d;
      tile_run(t, (idx)((gidx)(i + 1) * columns / blocks) - t->a0,
               (idx)((gidx)(j + 1) * columns / blocks) - t->b0);
    }
}

static void accumulate(const struct arrow_rows *r, int is_first, real *sums)
{
  struct tile t = {.d = r->system->d, .is_first = is_first};
  t.stride = arrow_group(r->system->d, r->system->k) * VECTORS;
  for (idx lane = r->lane_begin; lane < r->lane_end && lane < r->count; lane += LANES) {
    t.sums = sums + lane;
    vector_accumulate(r, lane, &t);
  }
}

static void fold(const real *sums, gidx n, idx used, real *out)
{
  for (gidx e = 0; e < n; e++, sums += LANE_COUNT) {
    val x[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; v++) x[v] = v * LANES < used ? load(sums + v * LANES) : splat(0);
#pragma GCC unroll 8
    for (int half = VECTORS / 2; half >= 1; half /= 2) {
#pragma GCC unroll 8
      for (int v = 0; v < half; v++) x[v] += x[v + half];
    }
    out[e] = within(x[0]);
  }
}

/* Columns one after another; a column is reduced by those before it, a vector of rows at a time. */
static idx border_factor(real *s, idx k, idx stride, real *pivot)
{
  for (idx j = 0; j < k; j++) {
    real *column = s + (gidx)j * stride;
    for (idx i = j / LANES * LANES; i < k; i += LANES) {
      val acc = load(column + i);
      for (idx p = 0; p < j; p++)
        acc = VAL_FMA(load(s + (gidx)p * stride + i), splat(-s[(gidx)p * stride + j]), acc);
      store(column + i, acc);
    }
    pivot[j] = column[j];
    if (!(pivot[j] > 0 && pivot[j] <= DBL_MAX)) return j;
    val root = VAL_SQRT(splat(pivot[j]));
    for (idx i = j / LANES * LANES; i < k; i += LANES) store(column + i, load(column + i) / root);
    column[j] = root[0];
  }
  return -1;
}

static void border_solve(const real *l, idx k, idx stride, real *x)
{
  for (idx j = 0; j < k; j++) {
    const real *column = l + (gidx)j * stride;
    real y = x[j] / column[j];
    idx i = j + 1;
    for (; i < k && i % LANES; i++) x[i] = __builtin_fma(column[i], -y, x[i]);
    for (; i < k; i += LANES) store(x + i, VAL_FMA(load(column + i), splat(-y), load(x + i)));
    x[j] = y;
  }
  for (idx i = k - 1; i >= 0; i--) {
    x[i] = x[i] / l[(gidx)i * stride + i];
    for (idx p = 0; p < i; p++) x[p] = __builtin_fma(-l[(gidx)p * stride + i], x[i], x[p]);
  }
}

const struct arrow_loops ARROW_TABLE = {
    .whiten = whiten,
    .accumulate = accumulate,
    .fold = fold,
    .border_factor = border_factor,
    .border_solve = border_solve,
    .steps = steps,
};
