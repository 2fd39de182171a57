/* SPDX-License-Identifier: BSD-3-Clause
 * The step of an atom: its frame moves, then the codes of its rows are solved again for it.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A step is accepted if the atom's objective does not rise: per row the chain over P of e^2, then
 * fma(rho, chain over m of t^2, .); rows by (N.12). */
#ifndef MODEL_STEP_H
#define MODEL_STEP_H

#include "model/arrow.h"
#include "model/state.h"

/* out[d][p] <- the orthonormal basis of U + E W (modified Gram-Schmidt, twice, positive diagonal),
 * W from beta[q d]: U + E W is a chain over j from U.  0 when its vectors depend on each other or
 * are not finite. */
int step_frame(const real *frame, const real *e, idx d, idx q, idx p, const real *beta, real *out);

/* l[d][d] <- Cholesky factor (N.5's orders) of U'U + rho I, U = frame[d][p]; d = 1: the number
 * itself.  0 when it is not positive definite. */
int step_factor(const real *frame, idx d, idx p, real rho, real *l);

/* t[d] <- (U'U + rho I)^-1 b; d = 1: one division. */
void step_solve(const real *l, idx d, const real *b, real *t);

/* Objective of a row with residual e[p] and codes t[d]. */
real row_objective(const real *e, idx p, const real *t, idx d, real rho);

/* One row's move: r + U_old t_old, its new codes t_new[d], its residual r_new[p] with them, and its
 * objective, which is returned.  l from step_factor(u_new). */
struct row_move {
  idx d, p;
  real rho;
  const real *u_old, *u_new, *l;
};
real step_row(const struct row_move *move, const real *r, const real *t_old, real *t_new,
              real *r_new);

/* Where the next try of a rejected step starts: ten times the addition before, or 1e-3 of the
 * largest diagonal entry of C, 1 if that is 0.  0 when there is no next try. */
int step_retry(const struct arrow_system *s, const struct arrow_outcome *last,
               struct arrow_start *next);

/* Reference: one atom's step with all its tries.  frame[d][p], codes[n][d] and residual[n][p] are
 * written where it is accepted. */
struct step_outcome {
  int accepted;
  struct arrow_outcome arrow; /* of the last solve; pair: log det there */
};
int step_reference(const struct atom_view *a, idx q, real *frame, real *codes,
                   real *const *residual, struct step_outcome *out);

#endif
