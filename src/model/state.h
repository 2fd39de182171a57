/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a fit: frames, codes and residuals; and the view of one atom.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Inside a sweep all values are f64.  Files have frames and codes in f32 (doc/numerics.md). */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "base/types.h"

/* r[p] <- x - sum_a sum_m t_am U_am, by fma in support order, m ascending.  frame[s]: the frames
 * [d][p] of the support; codes[s][d]: its codes. */
void residual_row(const float *x, const real *const *frame, const real *codes, idx s, idx d, idx p,
                  real *r);

/* An atom, and the rows whose support has it, ascending. */
struct atom_view {
  idx d, p;
  gidx n;
  const real *frame;           /* [d][p] U */
  const gidx *row;             /* [n] global rows */
  const real *const *residual; /* [n] of [p] r_i */
  const real *codes;           /* [n][d] t_i */
  real rho;                    /* ridge penalty on the codes */
  int nonnegative;             /* codes are at least 0; d = 1 */
};

/* The inner product of a[p] and b[p] by fma, in order; comments call such a sum a chain. */
real chain_dot(const real *a, const real *b, idx p);

#endif
