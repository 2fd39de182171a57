/* SPDX-License-Identifier: BSD-3-Clause
 * Rows that are solved with a square of a Cholesky factor, T <- T L^-T, a thread a row and
 * FACTOR_LEAF columns at a time in registers. */
#ifndef DENSE_ROWS_H
#define DENSE_ROWS_H

#include "dense_types.h"

/* With a pitch that is odd, rows are written without two lanes in a bank. */
struct rows_shared {
  double l[FACTOR_WIDTH][FACTOR_WIDTH + 1];                /* [row][column] */
  double done[FACTOR_WIDTH - FACTOR_LEAF][FACTOR_THREADS]; /* each thread's own columns */
};

/* Subtract what the columns before the leaf give. */
static __device__ inline void leaf_catch_up(double leaf[FACTOR_LEAF], const struct rows_shared *s,
                                            int first)
{
#pragma unroll 2
  for (int k = 0; k < first; k++) {
    double own = -s->done[k][threadIdx.x];
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) leaf[c] = fma(own, s->l[first + c][k], leaf[c]);
  }
}

/* Subtract what column c of the leaf gives those after it. */
static __device__ inline void leaf_update(double leaf[FACTOR_LEAF], const struct rows_shared *s,
                                          int first, int c)
{
#pragma unroll
  for (int later = c + 1; later < FACTOR_LEAF; later++)
    leaf[later] = fma(-leaf[c], s->l[first + later][first + c], leaf[later]);
}

static __device__ inline void leaf_keep(const double leaf[FACTOR_LEAF], struct rows_shared *s,
                                        int first)
{
#pragma unroll
  for (int c = 0; c < FACTOR_LEAF; c++)
    if (first + c < FACTOR_WIDTH - FACTOR_LEAF) s->done[first + c][threadIdx.x] = leaf[c];
}

#endif
