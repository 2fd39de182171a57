/* SPDX-License-Identifier: BSD-3-Clause
 * dense_factor: the columns of one panel of a Cholesky factor (N.19), from sums that lack the
 * panel's own columns alone.
 *
 * grid    ceil(rows below the square / FACTOR_ROWS), at least 1
 * block   FACTOR_THREADS, a row each: those of the square, then own ones below it
 * shared  struct shared
 * sums    a chain of fma for each entry, ascending columns, from the entry itself
 *
 * Every block factors the square for itself, so that none waits for another; the first one writes
 * it, to `corners`.  All columns before the panel were applied by dense_product. */
#include "dense_rows.h"

struct shared {
  struct rows_shared rows;
  double pivot[2];
};

/* Finish columns first .. first + columns - 1 of all rows, in registers.  The row of the next pivot
 * knows it before the others know this column.  Returns `columns`, or the first bad one. */
static __device__ inline int leaf_factor(double leaf[FACTOR_LEAF], struct shared *s, int first,
                                         int columns, double *pivots)
{
  int thread = threadIdx.x;
  if (thread == first) s->pivot[0] = leaf[0];
  __syncthreads();
#pragma unroll
  for (int c = 0; c < FACTOR_LEAF; c++) {
    if (c == columns) return columns;
    double pivot = s->pivot[c % 2];
    if (pivots && thread == 0) pivots[c] = pivot;
    if (!(pivot > 0 && pivot <= 1.7976931348623157e308)) return c;
    double root = sqrt(pivot);
    leaf[c] = thread == first + c ? root : leaf[c] / root;
    if (thread < FACTOR_WIDTH) s->rows.l[thread][first + c] = leaf[c];
    if (c + 1 < FACTOR_LEAF && thread == first + c + 1)
      s->pivot[(c + 1) % 2] = fma(-leaf[c], leaf[c], leaf[c + 1]);
    __syncthreads();
    leaf_update(leaf, &s->rows, first, c);
  }
  return FACTOR_LEAF;
}

extern "C" __global__ void __launch_bounds__(FACTOR_THREADS, 2)
    dense_factor(const __grid_constant__ struct factor_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  int thread = threadIdx.x, is_square = thread < FACTOR_WIDTH;
  int width = a.n - a.first < FACTOR_WIDTH ? a.n - a.first : FACTOR_WIDTH;
  int row = a.first + thread + (is_square ? 0 : blockIdx.x * FACTOR_ROWS), is_there = row < a.n;
  double *square = a.corners + (long long)a.first * FACTOR_WIDTH, leaf[FACTOR_LEAF];
  if (*a.good < a.n) return;
#pragma unroll 1
  for (int first = 0; first < width; first += FACTOR_LEAF) {
    int columns = width - first < FACTOR_LEAF ? width - first : FACTOR_LEAF;
    int has = !is_there ? 0 : is_square && thread - first < columns ? thread - first + 1 : columns;
    double *at = a.s + row + (a.first + first) * a.stride;
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) leaf[c] = c < has ? at[c * a.stride] : 0;
    leaf_catch_up(leaf, &s->rows, first);
    int done = leaf_factor(leaf, s, first, columns, blockIdx.x ? 0 : a.pivots + a.first + first);
    if (done < columns) {
      if (blockIdx.x == 0 && thread == 0) *a.good = a.first + first + done;
      return;
    }
    if (is_square) at = square + thread + first * FACTOR_WIDTH;
    if (is_square && blockIdx.x) has = 0;
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++)
      if (c < has) at[c * (is_square ? FACTOR_WIDTH : a.stride)] = leaf[c];
    leaf_keep(leaf, &s->rows, first);
  }
}
