/* SPDX-License-Identifier: BSD-3-Clause
 * Writes the results of a row: its residual (N.3r), its codes and its quality.  The quality is
 * computed from the codes as they are stored, in f32.
 *
 * A lane has four columns of a span (CODES_SPAN columns); chains run over the vectors in support
 * order. */
#ifndef CODES_QUALITY_H
#define CODES_QUALITY_H

#include "codes_row.h"

enum { QUAD = CODES_SPAN / WARP };

/* out[v] <- column c + 32 v of one vector; 0 for columns from p on. */
static __device__ inline void columns_load(const float *from, int c, int p, double out[QUAD])
{
#pragma unroll
  for (int v = 0; v < QUAD; v++) out[v] = c + v * WARP < p ? from[c + v * WARP] : 0;
}

static __device__ inline void residual_write(const struct codes_row *r, float *out)
{
  for (int c = threadIdx.x; c < r->p; c += CODES_SPAN) {
    double acc[QUAD], column[QUAD];
    columns_load(r->x, c, r->p, acc);
#pragma unroll 4
    for (int j = 0; j < r->count; j++) {
      columns_load(vector_of(r, j), c, r->p, column);
#pragma unroll
      for (int v = 0; v < QUAD; v++) acc[v] = fma(-r->solved[j], column[v], acc[v]);
    }
#pragma unroll
    for (int v = 0; v < QUAD; v++)
      if (c + v * WARP < r->p) out[c + v * WARP] = (float)acc[v];
  }
}

/* spans[3][CODES_SPAN] <- columns from `first` on of the error, the reconstruction and the row. */
static __device__ inline void span_describe(const struct codes_row *r, double *spans, int first)
{
  int lane = lane_own(), c = first + lane;
  double x[QUAD], error[QUAD], fit[QUAD] = {}, column[QUAD];
  columns_load(r->x, c, r->p, x);
#pragma unroll
  for (int v = 0; v < QUAD; v++) error[v] = x[v];
#pragma unroll 4
  for (int j = 0; j < r->count; j++) {
    double code = (float)r->solved[j];
    columns_load(vector_of(r, j), c, r->p, column);
#pragma unroll
    for (int v = 0; v < QUAD; v++) {
      error[v] = fma(-code, column[v], error[v]);
      fit[v] = fma(code, column[v], fit[v]);
    }
  }
#pragma unroll
  for (int v = 0; v < QUAD; v++) {
    double *to = spans + v * WARP + lane;
    to[0] = error[v];
    to[CODES_SPAN] = fit[v];
    to[2 * CODES_SPAN] = x[v];
  }
}

/* The number of support atoms with a stored code that is not 0. */
static __device__ inline int atoms_count(const struct codes_row *r, int d)
{
  int count = 0;
  for (int a = threadIdx.x; a * d < r->count; a += WARP) {
    int any = 0;
    for (int k = 0; k < d; k++) any |= (float)r->solved[a * d + k] != 0;
    count += any;
  }
  return __reduce_add_sync(FULL_WARP, count);
}

/* Four chains over the columns, one in each of four lanes: squares of the error; row times
 * reconstruction; squares of the row; squares of the reconstruction. */
static __device__ inline void quality_write(const struct codes_row *r, double *spans, int d,
                                            struct code_quality *out)
{
  int lane = lane_own();
  const double *left = spans + (lane == 0 ? 0 : lane == 3 ? 1 : 2) * CODES_SPAN;
  const double *right = spans + (lane == 0 ? 0 : lane == 2 ? 2 : 1) * CODES_SPAN;
  double sum = 0;
  for (int first = 0; first < r->p; first += CODES_SPAN) {
    int columns = r->p - first < CODES_SPAN ? r->p - first : CODES_SPAN;
    span_describe(r, spans, first);
    __syncwarp();
    if (lane < 4)
#pragma unroll 8
      for (int c = 0; c < columns; c++) sum = fma(left[c], right[c], sum);
    __syncwarp();
  }
  double dot = __shfl_sync(FULL_WARP, sum, 1), row = __shfl_sync(FULL_WARP, sum, 2);
  double fit = __shfl_sync(FULL_WARP, sum, 3), norms = sqrt(row) * sqrt(fit);
  struct code_quality q = {sum, norms > 0 ? dot / norms : 0, atoms_count(r, d), row};
  if (lane == 0) *out = q;
}

/* Write the results that the job wants of a row.  Its codes are in r->solved. */
static __device__ inline void codes_write(const struct codes_args *a, long long row,
                                          const struct codes_row *r, double *spans)
{
  if (a->residual) residual_write(r, a->residual + row * a->p);
#pragma unroll 1
  for (int v = threadIdx.x; a->codes && v < r->count; v += WARP)
    a->codes[row * r->count + v] = (float)r->solved[v];
  if (a->quality) quality_write(r, spans, a->d, a->quality + row);
}

#endif
