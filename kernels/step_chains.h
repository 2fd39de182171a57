/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: chains over the columns of vectors in shared memory.
 *
 * A chain cannot be faster than its fma, 8 cycles each on 9.0, and is hardly slower where pairs of
 * columns are brought a little before they are used.  The compiler would bring them when they are
 * wanted, to spare registers, so the order of loads is told to it; more of them on their way than
 * these would wait for each other. */
#ifndef STEP_CHAINS_H
#define STEP_CHAINS_H

#include "async_copy.h"

static __device__ inline double2 pair_get(unsigned at)
{
  double2 x;
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x.x), "=d"(x.y) : "r"(at));
  return x;
}

/* Column after column of some, use(x) with those of all vectors. */
template <int VECTORS, class Use>
static __device__ inline void columns_walk(const double *const *vectors, int first, int end,
                                           Use use)
{
#pragma unroll 1
  for (int c = first; c < end; c++) {
    double x[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) x[v] = vectors[v][c];
    use(x);
  }
}

/* The same of all p columns, and what is beyond them is read: a few columns, in shared memory. */
template <int VECTORS, class Use>
static __device__ inline void vectors_walk(const double *const *vectors, int p, Use use)
{
  enum { MOST = 9, AHEAD = VECTORS <= 3 ? 4 : VECTORS <= 5 ? 2 : 1, TURN = 8 };
  double2 ring[AHEAD][VECTORS];
  unsigned at[VECTORS];
  int c = 0;
  if (VECTORS > MOST) {
    columns_walk<VECTORS>(vectors, 0, p, use);
    return;
  }
#pragma unroll
  for (int v = 0; v < VECTORS; v++) at[v] = shared_address(vectors[v]);
#pragma unroll
  for (int i = 0; i < AHEAD; i++)
#pragma unroll
    for (int v = 0; v < VECTORS; v++) ring[i][v] = pair_get(at[v] + 16 * i);
#pragma unroll 1
  for (; c + 2 * TURN <= p; c += 2 * TURN) {
#pragma unroll
    for (int i = 0; i < TURN; i++) {
      double x[VECTORS], y[VECTORS];
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        x[v] = ring[i % AHEAD][v].x;
        y[v] = ring[i % AHEAD][v].y;
      }
      use(x);
      use(y);
#pragma unroll
      for (int v = 0; v < VECTORS; v++) ring[i % AHEAD][v] = pair_get(at[v] + 16 * (i + AHEAD));
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++) at[v] += 16 * TURN;
  }
  columns_walk<VECTORS>(vectors, c, p, use);
}

/* The chain of two vectors. */
static __device__ __noinline__ double chain(const double *x, const double *y, int p)
{
  const double *const vectors[] = {x, y};
  double acc = 0;
  vectors_walk<2>(vectors, p, [&](const double *at) { acc = fma(at[0], at[1], acc); });
  return acc;
}

/* The same, and that of the second with itself. */
static __device__ __noinline__ double2 chain_with_square(const double *x, const double *y, int p)
{
  const double *const vectors[] = {x, y};
  double2 acc = {0, 0};
  vectors_walk<2>(vectors, p, [&](const double *at) {
    acc.x = fma(at[0], at[1], acc.x);
    acc.y = fma(at[1], at[1], acc.y);
  });
  return acc;
}

#endif
