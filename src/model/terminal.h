/* SPDX-License-Identifier: BSD-3-Clause
 * The result of the terminal pass: evidence, covariance, identifiability (doc/numerics.md).  S is
 * the Schur complement on the borders of all atoms (N.18), and phi the RSS over the degrees of
 * freedom (N.19).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Atom a has borders border[a] .. border[a + 1] - 1.  Its covariance block is padded with NaN to
 * max_k. */
#ifndef MODEL_TERMINAL_H
#define MODEL_TERMINAL_H

#include "base/det_pair.h"
#include "base/memory.h"
#include "base/types.h"
#include "model/artifact.h"
#include "model/identity.h"

/* A pair of atoms, first < second, with a block of phi S^-1: the covariance of their borders. */
struct cross {
  real strength; /* Frobenius norm of the block, squares summed column by column */
  idx first, second;
};

/* A direction in which S is nearly singular, so that the data do not determine it.  atom[] lists
 * the atoms with the largest shares of its squared norm, in falling order. */
enum { CARRIERS = 8, MAX_WEAK = 256 };
struct weak_direction {
  real eigenvalue;
  idx atom[CARRIERS]; /* -1: none */
  real share[CARRIERS];
};

/* Eigenvalues of S from LAPACK; their bits are not guaranteed. */
struct spectrum {
  /* Which results were computed; 0: not asked for, no LAPACK, or a failure (see `why`). */
  int has_inertia, has_values, has_vectors;
  int info; /* of the LAPACK routine that failed; 0: none did */
  /* the reason why results are missing; or the library that computed them, and the step that
   * failed */
  char why[256];
  idx n;            /* borders */
  real *eigenvalue; /* [n] ascending */
  idx inertia[3];   /* positive, negative, zero, from LDL' */
  real condition;   /* largest over smallest magnitude */
  idx weak;         /* number of eigenvalues of at most weak_part times the largest magnitude */
  real weak_part;
  idx listed;                       /* listed weak directions: min(weak, MAX_WEAK) */
  struct weak_direction *direction; /* [listed] */
};

/* Two nearly equal atoms.  cosine: of vectors; of frames the root mean square cosine of their
 * principal angles. */
struct duplicate {
  idx first, second;
  real cosine;
};

/* log|S| estimated by stochastic Lanczos quadrature. */
struct slq {
  int is_there, is_converged, failed_probe; /* failed_probe -1: none */
  idx probes, steps;
  real estimate, error; /* of log|S|, and its standard error */
  real moved;           /* by how much the last doubling of the steps changed the estimate */
};

struct terminal_result {
  idx k, d, p, directions, max_k, n_border;
  gidx n;
  idx *border; /* [k + 1] */
  struct det_pair rows, borders;
  real log_det_rows, log_det_border, half_log_det;
  idx bad_pivot;   /* of S: the first pivot that is not > 0; -1: none */
  int is_factored; /* S was formed and is positive definite: there is a covariance */
  real phi, rss;
  gidx codes;       /* number of vectors that (N.5) keeps, in all rows; each has a code */
  real *covariance; /* [k][max_k][max_k]; NULL: none */
  idx n_cross;
  struct cross *cross; /* [n_cross] strongest first */
  real *cross_blocks;  /* [n_cross][max_k][max_k]; rows: borders of the first atom */
  struct spectrum spectrum;
  struct slq slq;
  idx n_duplicates; /* near duplicates that are listed */
  gidx duplicates;  /* near duplicates that were found */
  struct duplicate *duplicate;
  struct artifact artifact;
  struct identity inputs;
  uint64_t fingerprint;
  struct arena arena; /* holds the arrays */
};
void terminal_result_free(struct terminal_result *r);

/* Does pair a come before pair b?  The stronger pair comes first, of equally strong pairs the one
 * with the lower atoms.  The order is total over different pairs. */
int cross_before(const struct cross *a, const struct cross *b);

#endif
