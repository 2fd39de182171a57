/* SPDX-License-Identifier: BSD-3-Clause
 * Gauss quadrature from a Lanczos tridiagonal matrix (Golub and Welsch 1969).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_QUADRATURE_H
#define MODEL_QUADRATURE_H

#include "base/types.h"

/* Nodes and weights from the symmetric tridiagonal matrix with diagonal d[m] and off-diagonal e[m -
 * 1]: d <- its eigenvalues, in no order; weight[m] <- the squared first components of their
 * eigenvectors.  e has space for m values and is overwritten.  ERR_INTERNAL when an eigenvalue does
 * not converge. */
int quadrature_make(real *d, real *e, idx m, real *weight);

#endif
