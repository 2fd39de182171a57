/* SPDX-License-Identifier: BSD-3-Clause
 * The border of an arrow system: Schur complement, factor, step (N.9, N.10).
 *
 * S stands by columns, PITCH apart, its rows j .. k - 1 of column j; row k is the right side; L is
 * written in the place of S.  Up to k = 32 the first warp factors four columns at a time: all its
 * lanes factor the square on the diagonal, each for itself, and apply it to a row of their own.  A
 * loop over these fours stays one: code of its own for each column does not fit in the cache of
 * instructions.  Where there are more warps, and more than eight columns, they help: they take four
 * columns off all but the next four, which the first warp does itself.  Beyond k = 32 its lanes
 * work in shared memory. */
#ifndef ARROW_BORDER_H
#define ARROW_BORDER_H

#include "arrow_row.h"

enum { PITCH = arrow_pitch(BORDER), BORDER_INPUTS = BORDER * BORDER + BORDER };

/* The parts of arrow_border_reals(). */
struct border {
  double *s, *c, *step; /* c with g_b behind it */
  double *found;        /* [ARROW_BLOCKS][2]: the pair of each block of a cluster */
};

static __device__ inline struct border border_at(double *at)
{
  struct border b;
  b.step = at; /* at a multiple of 16 bytes */
  b.s = at + arrow_step_reals(BORDER);
  b.c = b.s + BORDER * PITCH;
  b.found = b.c + BORDER_INPUTS;
  return b;
}

/* Begin to copy C and g_b. */
static __device__ inline void border_order(const struct border *b, const double *in, long long n)
{
  in += n * (FRAME * FRAME + FRAME * BORDER + FRAME);
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER_INPUTS; e += ARROW_TEAM)
    async_copy8(b->c + e, in + e);
}

/* Entry (i, j) of S, of the right side where i is k, from that of T or w. */
static __device__ inline double border_entry(const struct border *b, int i, int j, double sum,
                                             double ridge)
{
  if (i == BORDER) return sum - b->c[BORDER * BORDER + j];
  double c = b->c[j * BORDER + i];
  return (i == j ? c + ridge : c) - sum;
}

/* S and the right side from T and w, which stand in their places, by all threads of the system. */
static __device__ inline void border_make(const struct border *b, double ridge)
{
#pragma unroll 2
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER * (BORDER + 1); e += ARROW_TEAM) {
    int j = e / (BORDER + 1), i = e % (BORDER + 1);
    double *s = b->s + j * PITCH + i;
    if (i >= j) *s = border_entry(b, i, j, *s, ridge);
  }
}

#if ARROW_K <= 32

enum {
  SQUARE = BORDER < 4 ? BORDER : 4, /* columns that are factored at a time */
  SQUARE_ROOM = SQUARE ? SQUARE : 1,
  SQUARES = (BORDER + SQUARE_ROOM - 1) / SQUARE_ROOM, /* the last may have fewer */
  HELPERS = SQUARES > 2 ? ARROW_TEAM / WARP - 1 : 0,  /* warps beside the first */
  IS_NEAR = HELPERS > 0 || SQUARES <= 2 /* the square before is all that is left to take off */
};

/* A square on the diagonal, which all lanes have: S, of which L becomes. */
struct square {
  double l[SQUARE_ROOM][SQUARE_ROOM];
};

/* to[begin .. count - 1] <- from[begin ..]; from[0] is at a multiple of 16 bytes. */
static __device__ inline void pairs_read(double *to, const double *from, int begin, int count)
{
#pragma unroll
  for (int i = begin / 2 * 2; i < count; i += 2) {
    if (i < begin || i + 1 == count) {
      int one = i < begin ? begin : i;
      to[one] = from[one];
    } else {
      double2 two = *(const double2 *)(from + i);
      to[i] = two.x;
      to[i + 1] = two.y;
    }
  }
}

static __device__ inline void square_read(struct square *to, const struct border *b, int first,
                                          int count)
{
#pragma unroll
  for (int q = 0; q < count; q++) {
    double column[SQUARE_ROOM];
    pairs_read(column, b->s + (first + q) * PITCH + first, q, count);
#pragma unroll
    for (int i = q; i < count; i++) to->l[i][q] = column[i];
  }
}

/* The row of S that a lane has beside the square: the first has the right side, its own row being
 * in the first square alone; so do those that have none. */
static __device__ inline int border_row(void)
{
  int lane = threadIdx.x % WARP;
  return lane > 0 && lane < BORDER ? lane : BORDER;
}

/* Put a lane's numbers of the columns in their places, of which those above the diagonal are
 * none. */
static __device__ inline void columns_write(const struct border *b, int first, int count,
                                            const double *x)
{
  int row = border_row();
  if (threadIdx.x % WARP >= (BORDER ? BORDER : 1)) return;
#pragma unroll
  for (int q = 0; q < count; q++)
    if (row >= first + q) b->s[(first + q) * PITCH + row] = x[q];
}

/* Take a column, of which a lane has l, off these. */
static __device__ inline void column_take(double *x, double l, const double *column, int count)
{
  double factor[SQUARE_ROOM];
  pairs_read(factor, column, 0, count);
#pragma unroll
  for (int q = 0; q < count; q++) x[q] = fma(-l, factor[q], x[q]);
}

/* x[count], a lane's numbers of the square before, become those of this one, off which all columns
 * before are taken. */
static __device__ inline void columns_read(double *x, const struct border *b, int first, int count)
{
  int row = border_row();
  double next[SQUARE_ROOM];
#pragma unroll
  for (int q = 0; q < count; q++) next[q] = b->s[(first + q) * PITCH + row];
  if (IS_NEAR && first > 0) {
#pragma unroll
    for (int p = 0; p < SQUARE; p++)
      column_take(next, x[p], b->s + (first - SQUARE + p) * PITCH + first, count);
  } else if (!IS_NEAR) {
#pragma unroll 2
    for (int j = 0; j < first; j++)
      column_take(next, b->s[j * PITCH + row], b->s + j * PITCH + first, count);
  }
#pragma unroll
  for (int q = 0; q < count; q++) x[q] = next[q];
}

/* Factor the columns, which stand in their places, by plain operations; their pivots are left where
 * steps will stand.  It is seldom called, and out of the way of what else is. */
static __device__ __noinline__ void columns_divide(double *at, double *pivots, int first, int count)
{
  int row = border_row(), in_use = threadIdx.x % WARP < (BORDER ? BORDER : 1);
#pragma unroll 1
  for (int j = first; j < first + count; j++) {
    double *column = at + j * PITCH, pivot = column[j], root = sqrt(pivot);
    __syncwarp();
    if (threadIdx.x % WARP == 0) {
      column[j] = root;
      pivots[j] = pivot;
    }
    if (in_use && row > j) column[row] = column[row] / root;
    __syncwarp();
#pragma unroll 1
    for (int q = j + 1; q < first + count; q++)
      if (in_use && row >= q)
        column[(q - j) * PITCH + row] = fma(-column[row], column[q], column[(q - j) * PITCH + row]);
    __syncwarp();
  }
}

/* Take square s off the columns behind the next one, which helpers share out. */
static __device__ inline void square_take(const struct border *b, int s, int helper)
{
  const double *columns = b->s + s * SQUARE * PITCH;
  int row = border_row();
  double l[SQUARE_ROOM];
  if (threadIdx.x % WARP >= (BORDER ? BORDER : 1)) return; /* has no row */
#pragma unroll
  for (int p = 0; p < SQUARE; p++) l[p] = columns[p * PITCH + row];
#pragma unroll 1
  for (int q = (s + 2) * SQUARE + helper; q < BORDER; q += HELPERS ? HELPERS : 1) {
    double x = b->s[q * PITCH + row];
#pragma unroll
    for (int p = 0; p < SQUARE; p++) x = fma(-l[p], columns[p * PITCH + q], x);
    if (row >= q) b->s[q * PITCH + row] = x;
  }
}

/* Factor `count` columns: every lane factors the square, so that no root waits for another lane,
 * and goes along with a row of its own, whose numbers are x, before of the last square, then of
 * this one.  *pair is multiplied by their pivots.  Returns whether these are good. */
static __device__ inline int columns_factor(const struct border *b, int first, int count, double *x,
                                            struct pair *pair)
{
  int good = 1, plain = 1, row = border_row();
  double pivots[SQUARE_ROOM], root0 = 0;
  struct pair with = *pair;
  struct square d;
  columns_read(x, b, first, count);
  __syncwarp(); /* lanes without a row have read the right side, as the first has */
  if (first > 0) columns_write(b, first, count, x);
  __syncwarp();
  square_read(&d, b, first, count);
#pragma unroll
  for (int j = 0; j < count; j++) {
#pragma unroll
    for (int p = 0; p < j; p++) {
      x[j] = fma(-x[p], d.l[j][p], x[j]);
#pragma unroll
      for (int i = j; i < count; i++) d.l[i][j] = fma(-d.l[i][p], d.l[j][p], d.l[i][j]);
    }
    pivots[j] = d.l[j][j];
    struct root root = root_of(pivots[j]);
    plain &= root.is_usual & is_above(pivots[j]) & ((row <= first + j) | is_usual(x[j]));
    if (j == 0) root0 = root.l;
#pragma unroll
    for (int i = j + 1; i < count; i++) d.l[i][j] = root_quotient(d.l[i][j], &root);
    x[j] = row == first + j ? root.l : root_quotient(x[j], &root);
  }
  pair_usual(&with, pivots, count);
  plain = __all_sync(FULL_WARP, plain);
  __syncwarp();        /* all have read the square */
  if (LIKELY(plain)) { /* and so the pivots are good */
    columns_write(b, first, count, x);
    if (first == 0 && threadIdx.x % WARP == 0) b->s[0] = root0;
    *pair = with;
  } else {
    columns_divide(b->s, b->step, first, count);
#pragma unroll 1
    for (int j = first; j < first + count; j++) {
      good &= is_good(b->step[j]);
      pair_pivot(pair, b->step[j]);
    }
#pragma unroll
    for (int q = 0; q < count; q++) x[q] = b->s[(first + q) * PITCH + row];
  }
  __syncwarp();
  return good;
}

/* By all warps of the system; the first has the results.  Returns whether all pivots are good; they
 * become *pair. */
static __device__ inline int border_factor(const struct border *b, int warp, struct pair *pair)
{
  const int left = BORDER % SQUARE_ROOM;
  int good = 1;
  double x[SQUARE_ROOM] = {};
  *pair = pair_unit();
#pragma unroll 1
  for (int s = 0; s < BORDER / SQUARE_ROOM; s++) {
    if (warp == 0) good &= columns_factor(b, s * SQUARE, SQUARE, x, pair);
    if (!HELPERS || s + 1 == SQUARES) continue;
    __syncthreads(); /* square s is written, the one before is taken off */
    if (warp > 0) square_take(b, s, warp - 1);
  }
  if (left && warp == 0) good &= columns_factor(b, BORDER - left, left, x, pair);
  pair_normalise(pair);
  return good;
}

/* A step of the rows first .. first + count - 1 by plain operations; *x is a lane's number of the
 * right side, its step in the end.  Returns whether all are finite. */
static __device__ inline int steps_divide(const struct border *b, int first, int count, double *x)
{
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, finite = 1;
#pragma unroll 1
  for (int i = first + count - 1; i >= first; i--) {
    double step = __shfl_sync(FULL_WARP, *x, i) / b->s[i * PITCH + i];
    finite &= is_finite(step);
    if (lane < i) *x = fma(-b->s[row * PITCH + i], step, *x);
    if (lane == i) *x = step;
  }
  return finite;
}

/* Steps of the rows first .. first + count - 1, the last that are left; every lane computes all of
 * them.  *x is a lane's number of the right side, its step when its row has one.  Returns whether
 * all are finite. */
static __device__ inline int steps_solve(const struct border *b, int first, int count, double *x)
{
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, plain = 1, finite = 1;
  double step[SQUARE_ROOM], own[SQUARE_ROOM], inverse[SQUARE_ROOM], next = *x;
  struct square d;
#pragma unroll
  for (int i = 0; i < count; i++) step[i] = __shfl_sync(FULL_WARP, *x, first + i);
  square_read(&d, b, first, count);
  pairs_read(inverse, b->c + first, 0, count);
  pairs_read(own, b->s + row * PITCH + first, 0, count);
#pragma unroll
  for (int i = count - 1; i >= 0; i--) {
    struct divisor diagonal = {d.l[i][i], inverse[i]};
    plain &= is_usual(diagonal.l) & is_usual(step[i]);
    step[i] = quotient(step[i], &diagonal);
    finite &= is_finite(step[i]);
#pragma unroll
    for (int p = 0; p < i; p++) step[p] = fma(-d.l[i][p], step[i], step[p]);
    next = lane < first ? fma(-own[i], step[i], next) : lane == first + i ? step[i] : next;
  }
  if (!LIKELY(plain)) return steps_divide(b, first, count, x);
  *x = next;
  return finite;
}

/* step <- L^-T of the right side.  Returns whether all are finite.  C, which nobody needs any more,
 * gives its place to the inverses of the diagonal. */
static __device__ inline int border_back(const struct border *b)
{
  const int left = BORDER % SQUARE_ROOM;
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, finite = 1;
  if (BORDER == 0) return 1;
  double x = b->s[row * PITCH + BORDER];
  if (lane < BORDER) b->c[lane] = divisor_of(b->s[lane * PITCH + lane]).inverse;
  __syncwarp();
  if (left) finite &= steps_solve(b, BORDER - left, left, &x);
#pragma unroll 1
  for (int first = BORDER - left - SQUARE; first >= 0; first -= SQUARE)
    finite &= steps_solve(b, first, SQUARE, &x);
  __syncwarp();
  if (lane < BORDER) b->step[lane] = x;
  __syncwarp();
  return finite;
}

#else

/* Column j is divided by the root of its pivot and taken off the columns behind it. */
static __device__ inline void border_column(const struct border *b, int j, double root)
{
  int lane = threadIdx.x % WARP;
  double *column = b->s + j * PITCH, part[2];
#pragma unroll
  for (int half = 0; half < (BORDER >= WARP + 1 ? 2 : 1); half++) {
    int i = j + 1 + half * WARP + lane;
    part[half] = i <= BORDER ? column[i] / root : 0;
  }
  __syncwarp();
  if (lane == 0) column[j] = root;
#pragma unroll
  for (int half = 0; half < (BORDER >= WARP + 1 ? 2 : 1); half++) {
    int i = j + 1 + half * WARP + lane;
    if (i <= BORDER) column[i] = part[half];
  }
  __syncwarp();
#pragma unroll 4
  for (int q = j + 1; q < BORDER; q++) {
    double factor = column[q];
#pragma unroll
    for (int half = 0; half < (BORDER >= WARP + 1 ? 2 : 1); half++) {
      int i = j + 1 + half * WARP + lane;
      double *to = b->s + q * PITCH + i;
      if (i >= q && i <= BORDER) *to = fma(-part[half], factor, *to);
    }
  }
  __syncwarp();
}

/* By all warps of the system, of which the first works.  Returns whether all pivots are good; they
 * become *pair. */
static __device__ inline int border_factor(const struct border *b, int warp, struct pair *pair)
{
  int good = 1;
  *pair = pair_unit();
  if (warp > 0) return good;
#pragma unroll 1
  for (int j = 0; j < BORDER; j++) {
    double pivot = b->s[j * PITCH + j];
    good &= is_good(pivot);
    pair_pivot(pair, pivot);
    border_column(b, j, sqrt(pivot));
  }
  pair_normalise(pair);
  return good;
}

/* step <- L^-T of the right side; a lane has entries lane and lane + 32.  Returns whether all are
 * finite. */
static __device__ inline int border_back(const struct border *b)
{
  int lane = threadIdx.x % WARP, finite = 1;
  double x[2], l[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int p = half * WARP + lane;
    x[half] = p < BORDER ? b->s[p * PITCH + BORDER] : 0;
    l[half] = p < BORDER ? b->s[p * PITCH + p] : 1;
  }
#pragma unroll 1
  for (int i = BORDER - 1; i >= 0; i--) {
    int upper = i >= WARP;
    double acc = __shfl_sync(FULL_WARP, upper ? x[1] : x[0], i % WARP);
    double root = __shfl_sync(FULL_WARP, upper ? l[1] : l[0], i % WARP);
    double step = acc / root;
    finite &= is_finite(step);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int p = half * WARP + lane;
      if (p < i) x[half] = fma(-b->s[p * PITCH + i], step, x[half]);
    }
    if (lane == 0) b->step[i] = step;
  }
  __syncwarp();
  return finite;
}

#endif

#endif
