/* SPDX-License-Identifier: BSD-3-Clause
 * The border of an arrow system, by one warp: Schur complement, factor, step (N.9, N.10).
 *
 * S stands by columns, PITCH apart, its rows j .. k - 1 of column j; row k is the right side, which
 * the factorisation turns into L^-1 r: forward substitution has the same chains. */
#ifndef ARROW_BORDER_H
#define ARROW_BORDER_H

#include "arrow_row.h"

enum { PITCH = arrow_pitch(BORDER), BORDER_INPUTS = BORDER * BORDER + BORDER };

/* The parts of arrow_border_reals(). */
struct border {
  double *s, *c, *step, *pair; /* c with g_b behind it */
};

static __device__ inline struct border border_at(double *at)
{
  struct border b = {at, at + BORDER * PITCH};
  b.step = b.c + BORDER_INPUTS;
  b.pair = b.step + BORDER;
  return b;
}

/* Begin to copy C and g_b. */
static __device__ inline void border_order(const struct border *b, const double *in, long long n)
{
  in += n * (FRAME * FRAME + FRAME * BORDER + FRAME);
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER_INPUTS; e += ARROW_TEAM)
    async_copy8(b->c + e, in + e);
}

/* S and the right side from T and w, which stand in their places, by all threads of the system. */
static __device__ inline void border_make(const struct border *b, double ridge)
{
#pragma unroll 2
  for (int e = threadIdx.x % ARROW_TEAM; e < BORDER * (BORDER + 1); e += ARROW_TEAM) {
    int j = e / (BORDER + 1), i = e % (BORDER + 1);
    double *s = b->s + j * PITCH + i;
    if (i < j) continue;
    if (i == BORDER)
      *s = *s - b->c[BORDER * BORDER + j];
    else
      *s = (i == j ? b->c[j * BORDER + i] + ridge : b->c[j * BORDER + i]) - *s;
  }
}

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
  double x[2], l[2], inverse[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int p = half * WARP + lane;
    x[half] = p < BORDER ? b->s[p * PITCH + BORDER] : 0;
    l[half] = p < BORDER ? b->s[p * PITCH + p] : 1;
    inverse[half] = 1.0 / l[half];
  }
#pragma unroll 1
  for (int i = BORDER - 1; i >= 0; i--) {
    int upper = i >= WARP;
    double acc = __shfl_sync(FULL_WARP, upper ? x[1] : x[0], i % WARP);
    double root = __shfl_sync(FULL_WARP, upper ? l[1] : l[0], i % WARP);
    double y = __shfl_sync(FULL_WARP, upper ? inverse[1] : inverse[0], i % WARP);
    double step = quotient(acc, root, y);
    if (!is_usual(acc) || !is_usual(root)) step = acc / root;
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
