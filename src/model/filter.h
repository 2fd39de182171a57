/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter: vectors as small integers, and a bound on how far a value that is computed
 * from the integers is from the exact one (doc/certified.md).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * `Size` is what orders atoms: |score| for d = 1, and for frames the norm of the d scores, whose
 * square the gate is but for its rounding.  Bounds are f64 and rounded up. */
#ifndef MODEL_FILTER_H
#define MODEL_FILTER_H

#include <math.h>
#include <stdint.h>

#include "base/types.h"

/* Rows whose norm times the largest norm of a frame is not below this take the exact path: a score
 * or gate of theirs may overflow. */
#define FILTER_HUGE(d) ((d) == 1 ? 0x1p120 : 0x1p58)

/* (C.1) What v[d][p] and its integers q have to do with each other: v~ = scale q. */
struct quantized {
  float scale;     /* > 0 */
  real norm;       /* >= |v|, over all d vectors together; not finite where v is not */
  real norm_short; /* >= |v~| */
  real error;      /* >= |v - v~| */
};

/* The scale of a vector with this largest magnitude; *out from sums of squares. */
static inline float filter_scale(float most, int levels)
{
  const float least = 0x1p-100f; /* far from where f32 arithmetic on scales underflows */
  float scale = most / (float)levels;
  return scale > least ? scale : least;
}

/* The last factor is larger than all roundings of sums of up to 2^20 f64 terms and of roots. */
static inline struct quantized filter_quantized(float scale, real norm, real norm_short, real error)
{
  const real up = 1 + 0x1p-30;
  return (struct quantized){scale, up * sqrt(norm), up * sqrt(norm_short), up * sqrt(error)};
}

/* q[d][p], each at most `levels` (1 .. 127) in magnitude. */
void filter_quantize(const float *v, idx d, idx p, int levels, int8_t *q, struct quantized *out);

/* (C.4) The size of row and frame differs from the one computed from x~ and d~ by at most
 *   alpha frame.norm + beta frame.error + rest,
 * where a sum of products errs by at most gamma times the sum of their magnitudes (C.8); those of
 * integers are exact, gamma is 0. */
struct filter_bound {
  real alpha, beta, rest;
};
struct filter_bound filter_bound(const struct quantized *row, idx d, idx p, real gamma);

#endif
