/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter, a safe screening of atoms: vectors are quantized to small integers.  A
 * bound limits the difference between a value that is computed from the integers and the exact
 * value (doc/certified.md).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Atoms are ordered by their `size` for a row: |score| for d = 1; for frames the norm of the d
 * scores, whose square is the gate up to rounding.  Bounds are f64 and rounded up. */
#ifndef MODEL_SCREEN_H
#define MODEL_SCREEN_H

#include <math.h>
#include <stdint.h>

#include "base/types.h"

/* The filter is used for a row only if its norm times the largest norm of a frame is below this
 * bound.  Otherwise a score or gate may overflow. */
#define SCREEN_HUGE(d) ((d) == 1 ? 0x1p120 : 0x1p58)

/* Bounds for v[d][p] and its quantized form v~ = scale q (C.1). */
struct quantized {
  float scale;     /* > 0 */
  real norm;       /* >= |v|, over all d vectors together; not finite if v is not */
  real norm_short; /* >= |v~| */
  real error;      /* >= |v - v~| */
  /* >= the mean, over c = 1 .. p, of the norm of the first c columns of v; `norm` is such a bound,
   * too */
  real mean;
};

/* The scale of a vector whose largest magnitude is max. */
static inline float screen_scale(float max, int levels)
{
  const float min = 0x1p-100f; /* far from underflow of f32 arithmetic on scales */
  float scale = max / (float)levels;
  return scale > min ? scale : min;
}

/* Bounds from sums of squares.  The factor `up` exceeds all f64 rounding errors of sums of up to
 * 2^20 terms and of square roots. */
static inline struct quantized screen_quantized(float scale, real norm, real norm_short, real error)
{
  const real up = 1 + 0x1p-30;
  real whole = up * sqrt(norm);
  return (struct quantized){scale, whole, up * sqrt(norm_short), up * sqrt(error), whole};
}

/* Quantize v[d][p] to q[d][p], each at most `levels` (1 .. 127) in magnitude. */
void screen_quantize(const float *v, idx d, idx p, int levels, int8_t *q, struct quantized *out);

/* The size of a frame d for a row x differs from the size computed from x~ and d~ by at most
 *   alpha frame.norm + beta frame.error + rest.                                             (C.4)
 * A computed sum of products may err by gamma times the sum of their magnitudes (C.8), but by no
 * more than the bound on its steps (C.8a).  Sums of integers are exact: gamma is 0. */
struct screen_bound {
  real alpha, beta, rest;
};
struct screen_bound screen_bound(const struct quantized *row, idx d, idx p, real gamma);

#endif
