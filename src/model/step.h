/* SPDX-License-Identifier: BSD-3-Clause
 * The step of an atom, a damped Newton step with variable projection: its frame moves, then the
 * codes of its rows are solved again for the new frame.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A step is accepted when the objective of the atom, |e|^2 + rho |t|^2 summed over its rows by
 * (N.12), does not rise. */
#ifndef MODEL_STEP_H
#define MODEL_STEP_H

#include "model/arrow.h"
#include "model/state.h"

/* out[d][p] <- the orthonormal basis of U + E W, by frame_orthonormalize().  U is frame[d][p], E
 * has the directions e[q][p], W is beta[q d].  Each entry of U + E W is a sum that begins with the
 * entry of U, and adds the products of the directions in order.  Returns 0 if the vectors of U + E
 * W are linearly dependent or not finite. */
int step_frame(const real *frame, const real *e, idx d, idx q, idx p, const real *beta, real *out);

/* l[d][d] <- the Cholesky factor, in the orders of (N.5), of U'U + rho I for U = frame[d][p]; for d
 * = 1 not the factor but the number U'U + rho.  Returns 0 if it is not positive definite. */
int step_factor(const real *frame, idx d, idx p, real rho, real *l);

/* t[d] <- (U'U + rho I)^-1 b, from l of step_factor(). */
void step_solve(const real *l, idx d, const real *b, real *t);

/* Objective of a row with residual e[p] and codes t[d]: fma(rho, |t|^2, |e|^2); |t|^2 is a chain,
 * |e|^2 a lane product (base/sums.h). */
real row_objective(const real *e, idx p, const real *t, idx d, real rho);

/* Solve a row's codes again for the new frame.  Its old contribution to the reconstruction is added
 * back to the residual r[p].  t_new[d] <- the new codes; r_new[p] <- the residual with the new
 * codes.  Returns the row's objective.  l is from step_factor() for u_new. */
struct row_move {
  idx d, p;
  real rho;
  int nonnegative; /* a code is at least 0; d = 1 */
  const real *u_old, *u_new, *l;
};
real step_row(const struct row_move *move, const real *r, const real *t_old, real *t_new,
              real *r_new);

/* *next <- the start of the next try after a rejected step: ten times the last additions to the
 * ridges; or, if these were 0, 1e-3 of the unit of each ridge.  Returns 0 if there is no next
 * try. */
int step_retry(const struct arrow_system *s, const struct arrow_outcome *last,
               struct arrow_start *next);

/* Reference: the step of an atom with all its tries.  frame[d][p], codes[n][d] and residual[n][p]
 * are written only if the step is accepted. */
struct step_outcome {
  int accepted;
  struct arrow_outcome arrow; /* of the last solve */
};
int step_reference(const struct atom_view *a, idx q, real *frame, real *codes,
                   real *const *residual, struct step_outcome *out);

#endif
