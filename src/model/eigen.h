/* SPDX-License-Identifier: BSD-3-Clause
 * Eigenvalues and eigenvectors of a symmetric matrix, the same bits on every machine (N.35).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_EIGEN_H
#define MODEL_EIGEN_H

#include "base/types.h"

/* value[n] <- the eigenvalues in no order, vector[n][n] <- unit eigenvectors, one per row; n >= 1.
 * matrix[n][n] is symmetric; both triangles are read and overwritten.  work has n^2 + 3 n reals.
 * The result does not depend on threads.  ERR_INPUT: a value is not finite, or the iteration does
 * not converge.  Not collective. */
int eigen_symmetric(idx n, real *matrix, real *value, real *vector, real *work, int threads);

#endif
