/* SPDX-License-Identifier: BSD-3-Clause
 * The border of an arrow system, by one warp: Schur complement, factor, step (N.9, N.10).
 *
 * S stands by columns, PITCH apart, its rows j .. k - 1 of column j; row k is the right side.  Up
 * to k = 32 a lane has a row of S in registers, and writes L in the place of S.  These registers
 * move by one from column to column, so that the loop stays one: code of its own for each column
 * does not fit in the cache of instructions.  Beyond, lanes work in shared memory. */
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

/* A lane's row of S, from the next column on; of L, the column before; its entry of the right side,
 * which becomes that of L^-1 r; the pivot if the next is its own. */
struct border_row {
  double s[BORDER ? BORDER : 1], l, right, next;
};

/* Take column j - 1 off those behind it, fewer than `left`, of which the first comes to s[0], and
 * divide that one.  Where the steps will be stands column j - 1 of L from row j on, then column j
 * from the next on.  The root is under way meanwhile. */
static __device__ inline void border_column(const struct border *b, struct border_row *r, int j,
                                            int left, double pivot)
{
  int lane = threadIdx.x % WARP;
  double last = b->s[(BORDER - 1) * PITCH + (lane < BORDER ? lane : BORDER)];
  struct root root = root_of(pivot);
#pragma unroll
  for (int q = 0; q < left - 1; q += 2) {
    double2 before = *(const double2 *)(b->step + q);
    r->s[q] = fma(-r->l, before.x, r->s[q + 1]);
    if (q + 2 < left) r->s[q + 1] = fma(-r->l, before.y, r->s[q + 2]);
  }
  if (left == BORDER) r->s[left - 1] = last; /* matters to the first column alone */
  double l = root_quotient(r->s[0], &root), y = root_quotient(r->right, &root);
  int plain = root.is_usual && (lane <= j || lane >= BORDER || is_usual(r->s[0])) &&
              (lane != j || is_usual(r->right));
  if (!__all_sync(FULL_WARP, plain)) {
    root.l = sqrt(pivot);
    l = r->s[0] / root.l;
    y = r->right / root.l;
  }
  __syncwarp(); /* the column before has been read */
  y = __shfl_sync(FULL_WARP, y, j);
  r->next = fma(-l, l, BORDER > 1 ? r->s[1] : 0);
  if (lane == j) r->right = y;
  if (lane > j) r->right = fma(-l, y, r->right);
  if (lane >= j && lane < BORDER) b->s[j * PITCH + lane] = lane == j ? root.l : l;
  if (lane > j && lane < BORDER) b->step[lane - j - 1] = l;
  r->l = l;
}

/* Columns from .. to - 1; behind the first there are fewer than `left`.  *pair is multiplied by
 * their pivots.  Returns whether these are good. */
static __device__ inline int columns_factor(const struct border *b, struct border_row *r, int from,
                                            int to, int left, struct pair *pair)
{
  int good = 1;
#pragma unroll 1
  for (int j = from; j < to; j++) {
    double pivot = __shfl_sync(FULL_WARP, r->next, j);
    good &= is_good(pivot);
    pair_pivot(pair, pivot);
    border_column(b, r, j, left, pivot);
    __syncwarp();
  }
  return good;
}

/* Returns whether all pivots are good; they become *pair. */
static __device__ inline int border_factor(const struct border *b, struct border_row *r,
                                           struct pair *pair)
{
  const int half = BORDER > 12 ? BORDER / 2 : BORDER; /* a loop of its own for what is left there */
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : BORDER;
  if (lane < arrow_step_reals(BORDER)) b->step[lane] = 0; /* for the first column */
#pragma unroll
  for (int q = 0; q < BORDER - 1; q++) r->s[q + 1] = b->s[q * PITCH + row];
  r->right = b->s[(lane < BORDER ? lane : 0) * PITCH + BORDER];
  r->next = b->s[row];
  r->l = 0;
  __syncwarp();
  int good = columns_factor(b, r, 0, half, BORDER, pair);
  if (half < BORDER) good &= columns_factor(b, r, half, BORDER, BORDER - half + 1, pair);
  pair_normalise(pair);
  return good;
}

/* step <- L^-T of the right side; a lane has an entry.  Returns whether all are finite. */
static __device__ inline int border_back(const struct border *b, const struct border_row *r)
{
  int lane = threadIdx.x % WARP, row = lane < BORDER ? lane : 0, finite = 1;
  double x = r->right, own = 0;
  struct divisor diagonal = divisor_of(b->s[row * PITCH + row]);
  int usual = is_usual(diagonal.l);
#pragma unroll 2
  for (int i = BORDER - 1; i >= 0; i--) {
    double step = quotient(x, &diagonal), l = b->s[row * PITCH + i];
    int plain = lane != i || (usual && is_usual(x));
    if (!__all_sync(FULL_WARP, plain)) step = x / diagonal.l;
    step = __shfl_sync(FULL_WARP, step, i);
    finite &= is_finite(step);
    if (lane < i) x = fma(-l, step, x);
    if (lane == i) own = step;
  }
  if (lane < BORDER) b->step[lane] = own;
  return finite;
}

/* Factor and solve; step and *pair are the results.  Returns whether they are what they should
 * be. */
static __device__ inline int border_solve(const struct border *b, struct pair *pair)
{
  struct border_row r = {};
  *pair = pair_unit();
  if (BORDER == 0) return 1;
  int good = border_factor(b, &r, pair);
  int finite = border_back(b, &r);
  __syncwarp();
  return good && finite;
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

/* Returns whether all pivots are good; they become *pair. */
static __device__ inline int border_factor(const struct border *b, struct pair *pair)
{
  int good = 1;
  *pair = pair_unit();
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
  return finite;
}

/* Factor and solve; step and *pair are the results.  Returns whether they are what they should
 * be. */
static __device__ inline int border_solve(const struct border *b, struct pair *pair)
{
  int good = border_factor(b, pair);
  if (!good) return 0;
  int finite = border_back(b);
  __syncwarp();
  return finite;
}

#endif

#endif
