/* SPDX-License-Identifier: BSD-3-Clause
 * Codes: the least-squares coefficients of a row on its support (N.4, N.5), the residual (N.3r),
 * and a row's part of the quality metrics (doc/numerics.md section 7).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The m atoms of a support are frames of d vectors.  So a support has M = m d vectors, in the order
 * of its atoms, and one code for each.  The vectors are given as pointers, vector[M]. */
#ifndef MODEL_CODES_H
#define MODEL_CODES_H

#include "base/types.h"

/* A vector whose Cholesky pivot is at most this part of its squared norm is dropped. */
#define DROP_TOLERANCE 0x1p-30
/* A code of 0 may become positive if the slope of the objective exceeds this part of the sum of the
 * sizes of its terms.  This is far more than the rounding of the terms. */
#define SLOPE_TOLERANCE 0x1p-40

/* What one row adds to the metrics. */
struct row_quality {
  /* sum over columns of e^2; e is x - sum_j codes_j vector_j, with the codes as stored, by fma in
   * support order */
  real error;
  real cosine;  /* of the row and its reconstruction; 0 if either is 0 */
  gidx nonzero; /* number of support atoms whose code block is not 0 */
  real square;  /* sum over columns of x^2, fma */
};

/* Reals of work space for the three functions below that have an argument `work`. */
gidx codes_work(idx big_m);

/* Reference of (N.4) and (N.5): codes[M] <- the codes, 0 for dropped vectors. */
void codes_reference(const float *row, const float *const *vector, idx big_m, idx p, real rho,
                     real *codes, real *work);

/* Reference of (N.5n): codes[M] <- the nonnegative codes; work as above. */
void codes_nonnegative_reference(const float *row, const float *const *vector, idx big_m, idx p,
                                 real rho, real *codes, real *work);

/* The nonnegative codes with the penalty 1/2 rho |c - toward|^2 (N.50), which draws the codes c
 * towards toward[M].  toward NULL: the codes are drawn towards 0. */
void codes_toward_reference(const float *row, const float *const *vector, idx big_m, idx p,
                            real rho, const real *toward, real *codes, real *work);

/* Reference of the residual of (N.3r): out[p] <- fl32(x - sum_j codes_j vector_j), by fma in
 * support order. */
void residual_reference(const float *row, const float *const *vector, idx big_m, idx p,
                        const real *codes, float *out);

/* Reference: a row's quality, from the codes as they are stored. */
struct row_quality quality_reference(const float *row, const float *const *vector, idx m, idx d,
                                     idx p, const float *codes);

/* The value in /supports/data for one atom: the code if d = 1.  Otherwise the norm of the code
 * block, summed in f64 and rounded once, with the sign of its entry of largest magnitude (the first
 * of several). */
float code_summary(const float *block, idx d);

#endif
