/* SPDX-License-Identifier: BSD-3-Clause
 * dense_solve: rows of the inverse of a Cholesky factor (N.19).  The rows of Z begin as unit
 * vectors, from which dense_product has already subtracted the contributions of all earlier rows.
 *
 * grid    ceil((first + width) / FACTOR_THREADS)
 * block   FACTOR_THREADS, one column of Z each
 * shared  struct rows_shared
 * sums    a chain of fma for each entry, ascending rows, from the entry itself, then a division */
#include "dense_rows.h"

static __device__ inline void square_load(const struct solve_args *a, struct rows_shared *s)
{
#pragma unroll 4
  for (int i = threadIdx.x; i < FACTOR_WIDTH * FACTOR_WIDTH; i += FACTOR_THREADS) {
    int row = i % FACTOR_WIDTH, column = i / FACTOR_WIDTH,
        is_there = row < a->width && column <= row;
    s->l[column][row] = is_there ? a->l[row + column * a->l_stride] : row == column;
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(FACTOR_THREADS)
    dense_solve(const __grid_constant__ struct solve_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct rows_shared *s = (struct rows_shared *)memory;
  int column = blockIdx.x * FACTOR_THREADS + threadIdx.x;
  double leaf[FACTOR_LEAF];
  square_load(&a, s);
  if (column >= a.first + a.width) return;
#pragma unroll 1
  for (int first = 0; first < a.width; first += FACTOR_LEAF) {
    int from = column - a.first - first, end = a.width - first; /* existing rows of the leaf */
    double *at = a.z + a.first + first + column * a.stride;
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) leaf[c] = c >= from && c < end ? at[c] : 0;
    leaf_catch_up(leaf, s, first);
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) {
      leaf[c] /= s->l[first + c][first + c];
      leaf_update(leaf, &s->l[first + c][first], c);
    }
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) {
      if (c >= from && c < end) at[c] = leaf[c];
      column_keep(s, first + c, leaf[c]);
    }
  }
}
