/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of a refit of one instruction set, as a table.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_REFIT_LOOPS_H
#define DEVICE_CPU_REFIT_LOOPS_H

#include "base/types.h"

struct refit_loops {
  /* out[count] <- lane products of a row with each vector; vectors NULL: with itself */
  void (*products)(const real *row, const real *vectors, idx count, idx p, real *out);
  /* out[p] <- chains over n rows, weights with a stride */
  void (*sum)(const real *residual, const idx *rows, idx n, idx p, const real *weight, idx stride,
              real *out);
  /* out[p] <- r + sign U t for u[d][p], one fma per vector in order; sign is 1 or -1; out may be
   * r */
  void (*add)(const real *r, const real *u, const real *t, real sign, idx d, idx p, real *out);
  /* r[p] <- x minus its reconstruction from vector[m] and codes[m] */
  void (*residual)(const float *x, const real *const *vector, idx m, idx p, const real *codes,
                   real *r);
  /* frame_relax() and frame_round() of model/relax.h, for d = 1 */
  void (*relax)(real *u, const float *v, idx p, real further);
  real (*round)(real *u, float *v, idx p);
};

#endif
