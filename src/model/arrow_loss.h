/* SPDX-License-Identifier: BSD-3-Clause
 * How many leading bits of an arrow system cancel while it is solved (N.13l).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ARROW_LOSS_H
#define MODEL_ARROW_LOSS_H

#include "model/arrow.h"

enum { ARROW_BITS = 53 }; /* bits of a significand; a system that loses all has no correct bit */

/* The number of bits that a solved system lost.  out: the outcome of the system; step_b[k]: the
 * step of its border.  Returns 0 if the system failed, and -1 if there is no memory for two k x k
 * matrices.  Not collective. */
idx arrow_lost_bits(const struct arrow_system *s, const struct arrow_outcome *out,
                    const real *step_b);

/* l <- the Cholesky factor of a by (N.5), without dropping vectors; both n x n and column-major.
 * *pair is multiplied by the pivots.  Returns the pivot that failed, or -1. */
idx arrow_cholesky(const real *a, idx n, real *l, struct det_pair *pair);
/* x[n] <- L^-1 x. */
void arrow_forward(const real *l, idx n, real *x);

#endif
