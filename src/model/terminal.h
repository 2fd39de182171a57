/* SPDX-License-Identifier: BSD-3-Clause
 * What the terminal pass gives: evidence, covariance, identifiability (doc/numerics.md).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Atom a has the borders border[a] .. border[a + 1] - 1; blocks are padded with NaN to k_most. */
#ifndef MODEL_TERMINAL_H
#define MODEL_TERMINAL_H

#include "base/log_pair.h"
#include "base/memory.h"
#include "base/types.h"
#include "model/artifact.h"

/* A pair of different atoms, first < second, and its block of phi S^-1. */
struct cross {
  real strength; /* Frobenius norm of the block: chain of squares by columns, square root */
  idx first, second;
};

/* Atoms that carry a direction, and their shares of its squared norm, falling. */
enum { CARRIERS = 8, WEAK_MOST = 256 };
struct weak_direction {
  real eigenvalue;
  idx atom[CARRIERS]; /* -1: none */
  real share[CARRIERS];
};

/* From LAPACK: shown, not promised to the bit. */
struct spectrum {
  int is_there;     /* 0: not asked for, or no LAPACK: see why */
  char why[256];    /* it is not there, or which library made it */
  idx n;            /* borders */
  real *eigenvalue; /* [n] ascending */
  idx inertia[3];   /* positive, negative, zero, from LDL' */
  real condition;   /* largest over smallest magnitude */
  idx weak;         /* eigenvalues at most weak_part of the largest */
  real weak_part;
  idx listed;                       /* of them described: min(weak, WEAK_MOST) */
  struct weak_direction *direction; /* [listed] */
};

/* Two atoms that are nearly the same: cosine of atoms, root mean square cosine of frames. */
struct duplicate {
  idx first, second;
  real cosine;
};

/* log|S| by stochastic Lanczos quadrature. */
struct slq {
  int is_there, is_converged, failed_probe; /* failed_probe -1: none */
  idx probes, steps;
  real estimate, error; /* of log|S|, and its standard error */
  real moved;           /* by the last doubling */
};

struct terminal_result {
  idx k, d, p, directions, k_most, n_border;
  gidx n;
  idx *border; /* [k + 1] */
  struct log_pair rows, borders;
  real log_det_rows, log_det_border, half_log_det;
  idx bad_pivot;   /* of S, the first that is not > 0; -1: none */
  int is_factored; /* S was formed and is positive definite: covariance is there */
  real phi, rss;
  gidx codes;       /* kept vectors of all rows */
  real *covariance; /* [k][k_most][k_most]; NULL: none */
  idx n_cross;
  struct cross *cross; /* [n_cross] strongest first */
  real *cross_blocks;  /* [n_cross][k_most][k_most] row: border of the first atom */
  struct spectrum spectrum;
  struct slq slq;
  idx n_duplicates; /* listed; */
  gidx duplicates;  /* found */
  struct duplicate *duplicate;
  struct artifact artifact;
  uint64_t fingerprint;
  struct arena arena; /* holds the arrays */
};
void terminal_result_free(struct terminal_result *r);

/* The stronger of two pairs; of equals the smaller one.  Total over different pairs. */
int cross_before(const struct cross *a, const struct cross *b);

#endif
