/* SPDX-License-Identifier: BSD-3-Clause
 * Solves rows with a diagonal block ("square") of a Cholesky factor, T <- T L^-T.  A thread has a
 * row, and FACTOR_LEAF columns of it at a time in registers. */
#ifndef DENSE_ROWS_H
#define DENSE_ROWS_H

#include "dense_types.h"

struct rows_shared {
  double l[FACTOR_WIDTH][FACTOR_WIDTH + FACTOR_LEAF];      /* [column][row], padded */
  double done[FACTOR_WIDTH - FACTOR_LEAF][FACTOR_THREADS]; /* each thread's own columns */
};

/* Subtract from the leaf (the columns in registers) the contribution of the columns before it. */
static __device__ inline void leaf_catch_up(double leaf[FACTOR_LEAF], const struct rows_shared *s,
                                            int first)
{
#pragma unroll 2
  for (int k = 0; k < first; k++) {
    double own = -s->done[k][threadIdx.x];
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c += 2) {
      double2 l = *(const double2 *)&s->l[k][first + c];
      leaf[c] = fma(own, l.x, leaf[c]);
      leaf[c + 1] = fma(own, l.y, leaf[c + 1]);
    }
  }
}

/* Subtract the contribution of column c of the leaf from the later columns of the leaf.  l is
 * column c of the leaf in the square; l[0] is in the leaf's first row. */
static __device__ inline void leaf_update(double leaf[FACTOR_LEAF], const double *l, int c)
{
#pragma unroll
  for (int later = (c + 1) / 2 * 2; later < FACTOR_LEAF; later += 2) {
    double2 two = *(const double2 *)(l + later);
    if (later > c) leaf[later] = fma(-leaf[c], two.x, leaf[later]);
    leaf[later + 1] = fma(-leaf[c], two.y, leaf[later + 1]);
  }
}

/* Store column c of the panel, which is finished. */
static __device__ inline void column_keep(struct rows_shared *s, int c, double value)
{
  if (c < FACTOR_WIDTH - FACTOR_LEAF) s->done[c][threadIdx.x] = value;
}

#endif
