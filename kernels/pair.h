/* SPDX-License-Identifier: BSD-3-Clause
 * Determinants m 2^e as pairs (m, e) (N.13).  A pivot multiplies m by its significand in [1/2, 1),
 * and its exponent is added to e.  So m becomes smaller.  After at most 512 pivots pair_normalise()
 * brings it back to [1/2, 1), which is exact. */
#ifndef PAIR_H
#define PAIR_H

#include "warp.h"

struct pair {
  double m;
  long long e;
};

static __device__ inline struct pair pair_unit(void)
{
  struct pair one = {0.5, 1};
  return one;
}

static __device__ inline void pair_pivot(struct pair *a, double pivot)
{
  int shift = 0;
  if (pivot < 2.2250738585072014e-308) { /* subnormal */
    pivot *= 18014398509481984.0;        /* 2^54 */
    shift = 54;
  }
  long long bits = __double_as_longlong(pivot);
  a->e += (int)(bits >> 52) - 1022 - shift;
  a->m *= __longlong_as_double((bits & 0xfffffffffffffLL) | 0x3fe0000000000000LL);
}

/* Multiply by several pivots, all of them positive, finite and not subnormal.  Significands and
 * exponents do not wait for each other; only the products do. */
static __device__ inline void pair_usual(struct pair *a, const double *pivots, int count)
{
  int exponents = 0;
#pragma unroll
  for (int i = 0; i < count; i++) exponents += __double2hiint(pivots[i]) >> 20;
  a->e += exponents - 1022 * count;
#pragma unroll
  for (int i = 0; i < count; i++)
    a->m *= __hiloint2double((__double2hiint(pivots[i]) & 0xfffff) | 0x3fe00000,
                             __double2loint(pivots[i]));
}

/* Multiply by several finite pivots and return 1.  If one of them is subnormal or not positive,
 * change nothing and return 0. */
static __device__ inline int pair_pivots(struct pair *a, const double *pivots, int count)
{
  int least = 0x7fffffff;
#pragma unroll
  for (int i = 0; i < count; i++) {
    int high = __double2hiint(pivots[i]);
    least = high < least ? high : least;
  }
  if (least < 0x100000) return 0;
  pair_usual(a, pivots, count);
  return 1;
}

static __device__ inline void pair_normalise(struct pair *a)
{
  long long bits = __double_as_longlong(a->m);
  a->e += (int)(bits >> 52) - 1022;
  a->m = __longlong_as_double((bits & 0xfffffffffffffLL) | 0x3fe0000000000000LL);
}

static __device__ inline void pair_times(struct pair *a, struct pair b)
{
  a->m *= b.m;
  a->e += b.e;
  pair_normalise(a);
}

/* The product over each group of `lanes` neighbouring lanes, by the tree of (N.12). */
static __device__ inline void pair_fold(struct pair *a, int lanes)
{
#pragma unroll
  for (int half = lanes / 2; half >= 1; half /= 2) {
    a->m *= __shfl_xor_sync(FULL_WARP, a->m, half);
    a->e += __shfl_xor_sync(FULL_WARP, a->e, half);
  }
  pair_normalise(a);
}

#endif
