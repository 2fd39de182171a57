/* SPDX-License-Identifier: BSD-3-Clause
 * Codes: the least-squares coefficients of a row on its support (N.4, N.5), the residual (N.3r),
 * and what a row adds to the quality metrics (doc/numerics.md section 7).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The m atoms of a support are frames of d vectors.  So a support has M = m d vectors, in the order
 * of its atoms, with one code each.  They are given as pointers, vector[M]. */
#ifndef MODEL_CODES_H
#define MODEL_CODES_H

#include "base/types.h"

/* A vector whose Cholesky pivot is at most this part of its squared norm is dropped. */
#define DROP_TOLERANCE 0x1p-30
/* A code of 0 may grow when the slope of the objective is more than this part of the sizes of its
 * terms: far more than their rounding. */
#define SLOPE_TOLERANCE 0x1p-40

/* What one row adds to the metrics. */
struct row_quality {
  real error;   /* sum over columns of e^2, e = x - sum of codes as stored, fma in support order */
  real cosine;  /* of the row and its reconstruction; 0 where either is 0 */
  gidx nonzero; /* support atoms with a code block that is not 0 */
  real square;  /* sum over columns of x^2, fma */
};

/* Reals of workspace of the two functions below. */
gidx codes_work(idx big_m);

/* Reference of (N.4) and (N.5): codes[M] <- the codes, 0 for dropped vectors. */
void codes_reference(const float *row, const float *const *vector, idx big_m, idx p, real rho,
                     real *codes, real *work);

/* Reference of (N.5n): codes[M] <- the nonnegative codes; work as above. */
void codes_nonnegative_reference(const float *row, const float *const *vector, idx big_m, idx p,
                                 real rho, real *codes, real *work);

/* The same of codes that are drawn to toward[M] in the place of 0 (N.50): the penalty is
 * 1/2 rho |c - toward|^2.  NULL: to 0. */
void codes_toward_reference(const float *row, const float *const *vector, idx big_m, idx p,
                            real rho, const real *toward, real *codes, real *work);

/* Reference of the residual of (N.3r): out[p] <- fl32(x - sum_j codes_j vector_j), by fma in
 * support order. */
void residual_reference(const float *row, const float *const *vector, idx big_m, idx p,
                        const real *codes, float *out);

/* Reference of a row's quality, from the codes as they are stored. */
struct row_quality quality_reference(const float *row, const float *const *vector, idx m, idx d,
                                     idx p, const float *codes);

/* What /supports/data holds for one atom: the code for d = 1, else the norm of the code block,
 * summed in f64 and rounded once, with the sign of its entry of largest magnitude (the first of
 * several). */
float code_summary(const float *block, idx d);

#endif
