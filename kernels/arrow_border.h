/* SPDX-License-Identifier: BSD-3-Clause
 * The border of an arrow system: Schur complement S, its factor L, the step (N.9, N.10).
 *
 * S is stored by columns (arrow_column()).  Column j has rows j .. k - 1 and, as row k, the right
 * side.  L overwrites S.
 *
 * For k <= 32 the first warp factors four columns at a time.  A *square* is the 4 x 4 block on the
 * diagonal.  Every lane factors the square for itself, and applies it to one row of its own.  The
 * loop over squares is not unrolled, because separate code for each does not fit in the instruction
 * cache.  With several warps and more than eight columns, the other warps help.  They subtract
 * finished columns from all later squares except the next one; from that one, the first warp
 * subtracts them.  For k > 32 the lanes of the first warp work in shared memory. */
#ifndef ARROW_BORDER_H
#define ARROW_BORDER_H

#include "arrow_row.h"

enum { BORDER_INPUTS = BORDER * BORDER + BORDER };

/* The arrays in arrow_border_reals(). */
struct border {
  double *s, *c; /* S; C and g_b, if in shared memory; later inverses, see border_back() */
  double *step;
  double *found; /* [blocks][2]: the determinant pair of each block of a cluster */
};

/* The arrays begin at `at`, a multiple of 16 bytes.  If sums > 0, that many reals of sums of warps
 * begin at `at`, too; the arrays overwrite them. */
static __device__ inline struct border border_at(double *at, int sums)
{
  struct border b;
  b.s = at;
  b.c = b.s + arrow_columns_reals(BORDER);
  b.step = at + arrow_border_room(BORDER, sums);
  b.found = b.step + arrow_step_reals(BORDER);
  return b;
}

/* Where row 0 of column j of S would be. */
static __device__ inline double *column_of(const struct border *b, int j)
{
  return b->s + arrow_column(BORDER, j);
}

/* border_order(): begin to copy C and g_b to shared memory.  border_prefetch(): prefetch them to
 * the second-level cache. */
static __device__ inline void border_order(const struct border *b, const double *c)
{
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER_INPUTS; e += ARROW_TEAM)
    async_copy8(b->c + e, c + e);
}
static __device__ inline void border_prefetch(const double *c)
{
  enum { LINE = 16 }; /* reals; the last prefetch may touch one more line */
  int e = threadIdx.x % ARROW_TEAM * LINE;
  if (e < BORDER_INPUTS + LINE - 1)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(c + (e < BORDER_INPUTS ? e : BORDER_INPUTS - 1)));
}

/* Entry (i, j) of S, from entries c of C and `sum` of T.  For i = k: entry j of the right side,
 * from entries of g_b and w. */
static __device__ inline double border_entry(int i, int j, double c, double sum, double ridge)
{
  if (i == BORDER) return sum - c;
  return (i == j ? c + ridge : c) - sum;
}
/* The index of entry (i, j) in the array of C and then g_b, which is row k. */
static __device__ inline int border_input(int i, int j)
{
  return i == BORDER ? BORDER * BORDER + j : j * BORDER + i;
}

/* Make S and the right side from T and w, which are in their places.  All threads of the system
 * call it. */
static __device__ inline void border_make(const struct border *b, double ridge)
{
#pragma unroll 2
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER * (BORDER + 1); e += ARROW_TEAM) {
    int j = e / (BORDER + 1), i = e % (BORDER + 1);
    double *s = column_of(b, j) + i;
    if (i >= j) *s = border_entry(i, j, b->c[border_input(i, j)], *s, ridge);
  }
}

#if ARROW_K <= 32

enum {
  SQUARE = BORDER < 4 ? BORDER : 4, /* columns that are factored at a time */
  SQUARE_ROOM = SQUARE ? SQUARE : 1,
  SQUARES = (BORDER + SQUARE_ROOM - 1) / SQUARE_ROOM, /* the last may have fewer columns */
  HELPERS = SQUARES > 2 ? ARROW_TEAM / WARP - 1 : 0,  /* warps that help the first */
  IS_NEAR = HELPERS > 0 || SQUARES <= 2 /* 1: the first warp subtracts only the previous square */
};

/* A square of S, which becomes a square of L.  Every lane has a copy. */
struct square {
  double l[SQUARE_ROOM][SQUARE_ROOM];
};

/* to[begin .. count - 1] <- from[begin ..], two at a time; from[0] is at a multiple of 16 bytes. */
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

/* Four columns that are factored together, as indices into S: `at` is the diagonal entry of the
 * first column, whose number is `first`; each next diagonal row is `apart` further.  These are not
 * pointers, because the compiler forgets that a pointer that a loop moves is to shared memory, and
 * then emits generic loads. */
struct columns {
  int at, first, apart;
};
static __device__ inline struct columns columns_of(int square)
{
  int first = square * SQUARE;
  struct columns c = {arrow_column(BORDER, first) + first, first,
                      arrow_column_length(BORDER, first)};
  return c;
}
static __device__ inline struct columns columns_after(struct columns c)
{
  struct columns next = {c.at + SQUARE * c.apart, c.first + SQUARE, c.apart - SQUARE};
  return next;
}
static __device__ inline struct columns columns_before(struct columns c)
{
  int apart = c.apart + SQUARE;
  struct columns next = {c.at - SQUARE * apart, c.first - SQUARE, apart};
  return next;
}

static __device__ inline void square_read(struct square *to, const double *s, struct columns c,
                                          int count)
{
#pragma unroll
  for (int q = 0; q < count; q++) {
    double column[SQUARE_ROOM];
    pairs_read(column, s + c.at + q * c.apart, q, count);
#pragma unroll
    for (int i = q; i < count; i++) to->l[i][q] = column[i];
  }
}

/* The row of S that this lane has.  Lane 0 has the right side, because row 0 is only in the first
 * square.  Lanes without a row also have the right side. */
static __device__ inline int border_row(void)
{
  int lane = threadIdx.x % WARP;
  return lane > 0 && lane < BORDER ? lane : BORDER;
}

/* Write a lane's numbers x[count] of the columns to S.  Numbers above the diagonal are not
 * stored. */
static __device__ inline void columns_write(double *s, struct columns c, int count, const double *x)
{
  int row = border_row();
  if (threadIdx.x % WARP >= (BORDER ? BORDER : 1)) return;
#pragma unroll
  for (int q = 0; q < count; q++)
    if (row >= c.first + q) s[c.at + q * c.apart + row - c.first] = x[q];
}

/* x[count] are a lane's numbers of the columns from `first` on.  Subtract the columns c from them;
 * l[SQUARE] are the lane's numbers of the columns c. */
static __device__ inline void columns_take(double *x, const double *l, const double *s,
                                           struct columns c, int first, int count)
{
#pragma unroll
  for (int p = 0; p < SQUARE; p++) {
    double factor[SQUARE_ROOM];
    pairs_read(factor, s + c.at + p * c.apart + first - c.first, 0, count);
#pragma unroll
    for (int q = 0; q < count; q++) x[q] = fma(-l[p], factor[q], x[q]);
  }
}

/* On entry, x are a lane's numbers of the previous square.  On return, x[count] are its numbers of
 * this square, from which all earlier columns have been subtracted. */
static __device__ inline void columns_read(double *x, const struct border *b, struct columns c,
                                           int count)
{
  int row = border_row();
  double next[SQUARE_ROOM], l[SQUARE_ROOM];
#pragma unroll
  for (int q = 0; q < count; q++) next[q] = b->s[c.at + q * c.apart + row - c.first];
  if (IS_NEAR && c.first > 0) columns_take(next, x, b->s, columns_before(c), c.first, count);
#pragma unroll 1
  for (struct columns o = columns_of(0); !IS_NEAR && o.first < c.first; o = columns_after(o)) {
#pragma unroll
    for (int p = 0; p < SQUARE; p++) l[p] = b->s[o.at + p * o.apart + row - o.first];
    columns_take(next, l, b->s, o, c.first, count);
  }
#pragma unroll
  for (int q = 0; q < count; q++) x[q] = next[q];
}

/* Factor the columns in place by plain operations.  pivots[j] <- the pivot of column j.  Not
 * inlined, since it is rarely called. */
static __device__ __noinline__ void columns_divide(double *s, double *pivots, int first, int count)
{
  int row = border_row(), in_use = threadIdx.x % WARP < (BORDER ? BORDER : 1);
#pragma unroll 1
  for (int j = first; j < first + count; j++) {
    double *column = s + arrow_column(BORDER, j), pivot = column[j], root = sqrt(pivot);
    __syncwarp();
    if (threadIdx.x % WARP == 0) {
      column[j] = root;
      pivots[j] = pivot;
    }
    if (in_use && row > j) column[row] = column[row] / root;
    __syncwarp();
#pragma unroll 1
    for (int q = j + 1; q < first + count; q++) {
      double *to = s + arrow_column(BORDER, q) + row;
      if (in_use && row >= q) *to = fma(-column[row], column[q], *to);
    }
    __syncwarp();
  }
}

/* Subtract the columns c from a lane's numbers of `count` columns `to`.  l[SQUARE] are the lane's
 * numbers of the columns c. */
static __device__ inline void columns_update(double *s, struct columns to, int count,
                                             const double *l, struct columns c)
{
  int row = border_row();
  double x[SQUARE_ROOM], *own = s + to.at + row - to.first;
#pragma unroll
  for (int q = 0; q < count; q++) x[q] = row >= to.first ? own[q * to.apart] : 0;
  columns_take(x, l, s, c, to.first, count);
#pragma unroll
  for (int q = 0; q < count; q++)
    if (row >= to.first + q) own[q * to.apart] = x[q];
}

/* Subtract the columns of a square from all squares after the next one.  The helpers share these
 * squares. */
static __device__ inline void square_take(const struct border *b, struct columns c, int helper)
{
  const int left = BORDER % SQUARE_ROOM, full = BORDER / SQUARE_ROOM;
  int row = border_row();
  double l[SQUARE_ROOM];
  if (threadIdx.x % WARP >= (BORDER ? BORDER : 1)) return; /* this lane has no row */
#pragma unroll
  for (int p = 0; p < SQUARE; p++) l[p] = b->s[c.at + p * c.apart + row - c.first];
#pragma unroll 1
  for (int s = c.first / SQUARE_ROOM + 2 + helper; s < SQUARES; s += HELPERS ? HELPERS : 1)
    if (s < full)
      columns_update(b->s, columns_of(s), SQUARE, l, c);
    else
      columns_update(b->s, columns_of(s), left, l, c);
}

/* Factor `count` columns.  Every lane factors the square, so that no root waits for another lane.
 * At the same time it factors a row of its own: x are its numbers of the previous square on entry,
 * and of this square on return.  The estimate of a root needs only the upper half of its pivot.  So
 * it is made early, from an approximate pivot: the upper halves of both are nearly always equal.
 * *pair is multiplied by the pivots.  Returns whether they are good. */
static __device__ inline int columns_factor(const struct border *b, struct columns c, int count,
                                            double *x, struct pair *pair)
{
  int good = 1, plain, row = border_row(), first = c.first;
  struct ranks ranks = {};
  double pivots[SQUARE_ROOM], root0 = 0, nearly = 0, estimate = 0; /* for the next pivot */
  int differs = 0;
  struct pair with = *pair;
  struct square d;
  columns_read(x, b, c, count);
  __syncwarp(); /* all lanes that use the right side have read it */
  if (first > 0) columns_write(b->s, c, count, x);
  __syncwarp();
  square_read(&d, b->s, c, count);
#pragma unroll
  for (int j = 0; j < count; j++) {
    pivots[j] = d.l[j][j];
    if (j > 0) differs |= __double2hiint(nearly) ^ __double2hiint(pivots[j]);
    struct root root = root_from(pivots[j], j > 0 ? estimate : root_estimate(pivots[j]));
    if (j + 1 < count) {
      double q = d.l[j + 1][j] * root.about;
      nearly = fma(-q, q, d.l[j + 1][j + 1]);
      estimate = root_estimate(nearly);
    }
    ranks_root(&ranks, pivots[j], root.l);
    if (row > first + j) ranks_number(&ranks, x[j]);
    if (j == 0) root0 = root.l;
#pragma unroll
    for (int i = j + 1; i < count; i++) d.l[i][j] = root_quotient(d.l[i][j], &root);
    x[j] = row == first + j ? root.l : root_quotient(x[j], &root);
#pragma unroll
    for (int q = j + 1; q < count; q++) {
      x[q] = fma(-x[j], d.l[q][j], x[q]);
#pragma unroll
      for (int i = q; i < count; i++) d.l[i][q] = fma(-d.l[i][j], d.l[q][j], d.l[i][q]);
    }
  }
  pair_usual(&with, pivots, count);
  plain = __all_sync(FULL_WARP, ranks_usual(&ranks) & (differs == 0));
  __syncwarp();        /* all lanes have read the square */
  if (LIKELY(plain)) { /* this implies that the pivots are good */
    columns_write(b->s, c, count, x);
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
    for (int q = 0; q < count; q++) x[q] = b->s[c.at + q * c.apart + row - first];
  }
  __syncwarp();
  return good;
}

/* Factor S.  All warps of the system call this; the results are valid in the first warp.  Returns
 * whether all pivots are good; *pair <- their determinant pair. */
static __device__ inline int border_factor(const struct border *b, int warp, struct pair *pair)
{
  const int left = BORDER % SQUARE_ROOM;
  int good = 1;
  double x[SQUARE_ROOM] = {};
  struct columns c = columns_of(0);
  *pair = pair_unit();
#pragma unroll 1
  for (int s = 0; s < BORDER / SQUARE_ROOM; s++, c = columns_after(c)) {
    if (warp == 0) good &= columns_factor(b, c, SQUARE, x, pair);
    if (!HELPERS || s + 1 == SQUARES) continue;
    __syncthreads(); /* the square is written, and the previous one has been subtracted */
    if (warp > 0) square_take(b, c, warp - 1);
  }
  if (left && warp == 0) good &= columns_factor(b, c, left, x, pair);
  pair_normalise(pair);
  return good;
}

/* Steps of the rows first .. first + count - 1 by plain operations.  *x is a lane's number of the
 * right side, and becomes its step.  Returns whether all are finite. */
static __device__ inline int steps_divide(const struct border *b, int first, int count, double *x)
{
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, finite = 1;
#pragma unroll 1
  for (int i = first + count - 1; i >= first; i--) {
    double step = __shfl_sync(FULL_WARP, *x, i) / column_of(b, i)[i];
    finite &= is_finite(step);
    if (lane < i) *x = fma(-column_of(b, row)[i], step, *x);
    if (lane == i) *x = step;
  }
  return finite;
}

/* Steps of the rows of a square; all later rows have been solved.  Every lane computes all of them.
 * `column` is where row 0 of the lane's own column would be.  *x is its number of the right side;
 * it becomes the lane's step when its row is solved.  Returns whether all are finite. */
static __device__ inline int steps_solve(const struct border *b, struct columns c, int count,
                                         const double *column, double *x)
{
  int lane = threadIdx.x % WARP, first = c.first;
  struct ranks ranks = {};
  double step[SQUARE_ROOM], own[SQUARE_ROOM], inverse[SQUARE_ROOM], next = *x;
  struct square d;
#pragma unroll
  for (int i = 0; i < count; i++) step[i] = __shfl_sync(FULL_WARP, *x, first + i);
  square_read(&d, b->s, c, count);
  pairs_read(inverse, b->c + first, 0, count);
  pairs_read(own, column + first, 0, count);
#pragma unroll
  for (int i = count - 1; i >= 0; i--) {
    struct divisor diagonal = {d.l[i][i], inverse[i]};
    ranks_number(&ranks, diagonal.l);
    ranks_number(&ranks, step[i]);
    step[i] = quotient(step[i], &diagonal);
#pragma unroll
    for (int p = 0; p < i; p++) step[p] = fma(-d.l[i][p], step[i], step[p]);
    next = lane < first ? fma(-own[i], step[i], next) : lane == first + i ? step[i] : next;
  }
  if (!LIKELY(ranks_usual(&ranks))) return steps_divide(b, first, count, x);
  *x = next;
  return 1; /* quotients of usual numbers (root.h) are finite */
}

/* step <- L^-T of the right side.  Returns whether all steps are finite.  The inverses of the
 * diagonal overwrite C, which is no longer needed. */
static __device__ inline int border_back(const struct border *b)
{
  const int left = BORDER % SQUARE_ROOM;
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, finite = 1;
  if (BORDER == 0) return 1;
  struct columns c = columns_of(SQUARES - 1);
  const double *own = column_of(b, row);
  double x = own[BORDER];
  if (lane < BORDER) b->c[lane] = divisor_of(column_of(b, lane)[lane]).inverse;
  __syncwarp();
  if (left) {
    finite &= steps_solve(b, c, left, own, &x);
    c = columns_before(c);
  }
#pragma unroll 1
  for (; c.first >= 0; c = columns_before(c)) finite &= steps_solve(b, c, SQUARE, own, &x);
  __syncwarp();
  if (lane < BORDER) b->step[lane] = x;
  __syncwarp();
  return finite;
}

#else

/* Divide column j by the root of its pivot, and subtract it from the columns after it. */
static __device__ inline void border_column(const struct border *b, int j, double root)
{
  int lane = threadIdx.x % WARP;
  double *column = column_of(b, j), part[2];
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
      double *to = column_of(b, q) + i;
      if (i >= q && i <= BORDER) *to = fma(-part[half], factor, *to);
    }
  }
  __syncwarp();
}

/* Factor S; all warps of the system call this, and the first one works.  Returns whether all pivots
 * are good; *pair <- their determinant pair. */
static __device__ inline int border_factor(const struct border *b, int warp, struct pair *pair)
{
  int good = 1;
  *pair = pair_unit();
  if (warp > 0) return good;
#pragma unroll 1
  for (int j = 0; j < BORDER; j++) {
    double pivot = column_of(b, j)[j];
    good &= is_good(pivot);
    pair_pivot(pair, pivot);
    border_column(b, j, sqrt(pivot));
  }
  pair_normalise(pair);
  return good;
}

/* step <- L^-T of the right side; a lane has entries lane and lane + 32.  Returns whether all steps
 * are finite. */
static __device__ inline int border_back(const struct border *b)
{
  int lane = threadIdx.x % WARP, finite = 1;
  double x[2], l[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int p = half * WARP + lane;
    x[half] = p < BORDER ? column_of(b, p)[BORDER] : 0;
    l[half] = p < BORDER ? column_of(b, p)[p] : 1;
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
      if (p < i) x[half] = fma(-column_of(b, p)[i], step, x[half]);
    }
    if (lane == 0) b->step[i] = step;
  }
  __syncwarp();
  return finite;
}

#endif

#endif
