/* SPDX-License-Identifier: BSD-3-Clause
 * One row of codes: where its vectors, its factor and its work memory are.  A warp has one row. */
#ifndef CODES_ROW_H
#define CODES_ROW_H

#include "plan.h"

#define FULL_WARP 0xffffffffu

struct codes_row {
  const float *x;
  const float *atoms; /* of codes_args */
  const int *slot;    /* [m_new] */
  int d, p;
  int old, count; /* vectors solved before, and in all */
  double *factor; /* panels */
  double *rank;   /* panels of the rank test; factor itself when rho is 0 */
  double *codes;  /* [count] */
  unsigned *kept; /* a bit a vector */
  float *slices;  /* shared: [2][slice_vectors][CODES_STRIDE] */
  double *spans;  /* shared: [3][CODES_SPAN] */
  int slice_vectors;
};

static __device__ inline const float *vector_of(const struct codes_row *r, int v)
{
  long long slot = r->d == 1 ? r->slot[v] : (long long)r->slot[v / r->d] * r->d + v % r->d;
  return r->atoms + slot * r->p;
}

static __device__ inline int is_kept(const struct codes_row *r, int v)
{
  return r->kept[v / WARP] >> v % WARP & 1;
}

#endif
