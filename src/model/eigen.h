/* SPDX-License-Identifier: BSD-3-Clause
 * Eigenvalues and eigenvectors of a symmetric matrix, the same bits on every machine (N.35).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_EIGEN_H
#define MODEL_EIGEN_H

#include "base/types.h"

/* value[n] <- eigenvalues in no order, vector[n][n] <- unit eigenvectors, one a row; n >= 1.
 * matrix[n][n] is symmetric, of which both triangles are read and used up; work is [n][n] and 3 n
 * more.  On so many threads; the result does not depend on them.  ERR_INPUT: a value is not finite,
 * or the iteration does not end.  Not collective. */
int eigen_symmetric(idx n, real *matrix, real *value, real *vector, real *work, int threads);

#endif
