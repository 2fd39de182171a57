/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_border: adds the parts of arrow_sum.cu and solves the borders of long systems (N.9, N.10).
 *
 * grid    systems
 * block   one warp
 * shared  arrow_border_reals(k) reals
 * sums    the remaining levels of the tree of (N.12), then segments in ascending order
 *
 * -D ARROW_D, ARROW_K, MMA
 *
 * If a system is not ok, the step of its border is 0. */
#define ARROW_TEAM WARP
#include "arrow_border.h"

enum { PARTS = arrow_parts(BORDER, MMA), PART = arrow_part_reals(BORDER) };

/* The total of sum number `at` over all segments. */
static __device__ inline double sum_total(const double *parts, int at, int segments)
{
  double total = 0;
#pragma unroll 1
  for (int s = 0; s < segments; s++, parts += PARTS * PART) {
    double lane[PARTS];
#pragma unroll
    for (int c = 0; c < PARTS; c++) lane[c] = parts[c * PART + at];
#pragma unroll
    for (int half = PARTS / 2; half >= 1; half /= 2)
#pragma unroll
      for (int c = 0; c < half; c++) lane[c] += lane[c + half];
    total = s ? total + lane[0] : lane[0];
  }
  return total;
}

static __device__ inline struct pair pair_total(const double *parts, int segments)
{
  struct pair total = pair_unit();
  parts += PART - 2;
#pragma unroll 1
  for (int s = 0; s < segments; s++, parts += PARTS * PART) {
    struct pair lane[PARTS];
#pragma unroll
    for (int c = 0; c < PARTS; c++) {
      lane[c].m = parts[c * PART];
      lane[c].e = __double_as_longlong(parts[c * PART + 1]);
    }
#pragma unroll
    for (int half = PARTS / 2; half >= 1; half /= 2)
#pragma unroll
      for (int c = 0; c < half; c++) pair_times(&lane[c], lane[c + half]);
    pair_times(&total, lane[0]);
  }
  return total;
}

/* Write T and w to the places of S and the right side. */
static __device__ inline void sums_scatter(const struct border *b, const double *parts,
                                           int segments)
{
#pragma unroll 2
  for (int e = threadIdx.x; e < BORDER * (BORDER + 1); e += WARP) {
    int j = e / (BORDER + 1), i = e % (BORDER + 1);
    if (i >= j) column_of(b, j)[i] = sum_total(parts, i * (i + 1) / 2 + j, segments);
  }
}

extern "C" __global__ void __launch_bounds__(WARP)
    arrow_border(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  struct arrow_atom atom = a.atoms[blockIdx.x];
  struct border b = border_at(shared, 0);
  struct arrow_found *found = a.found + atom.number;
  int segments = (atom.n + ARROW_SEGMENT_ROWS - 1) / ARROW_SEGMENT_ROWS, ok = !found->not_ok;
  double *out = a.out + atom.out + (long long)atom.n * FRAME;
  const double *parts = a.parts + (long long)atom.first_unit * (PARTS * PART);
  struct pair pair = pair_unit(), rows;
  border_order(&b, a.in + atom.in + (long long)atom.n * (FRAME * FRAME + FRAME * BORDER + FRAME));
  async_commit();
  sums_scatter(&b, parts, segments);
  rows = pair_total(parts, segments);
  ASYNC_WAIT(0);
  __syncwarp();
  border_make(&b, atom.ridge_b);
  __syncwarp();
  ok = ok && border_factor(&b, 0, &pair) && border_back(&b);
  pair_times(&rows, pair);
  for (int j = threadIdx.x; j < BORDER; j += WARP) out[j] = ok ? b.step[j] : 0;
  if (threadIdx.x > 0) return;
  found->m = rows.m;
  found->e = rows.e;
  if (!ok) found->not_ok = 1;
}
