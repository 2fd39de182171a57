/* SPDX-License-Identifier: BSD-3-Clause
 * Gauss quadrature from a Lanczos tridiagonal matrix (Golub and Welsch 1969).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_QUADRATURE_H
#define MODEL_QUADRATURE_H

#include "base/types.h"

/* d <- the nodes, weight[m] <- the weights, of the symmetric tridiagonal matrix with diagonal d[m]
 * and off-diagonal e[m - 1].  Nodes are its eigenvalues, in no order; weights are the squared first
 * components of its eigenvectors.  e has room for m values and is overwritten.  ERR_INTERNAL when
 * an eigenvalue does not converge. */
int quadrature_make(real *d, real *e, idx m, real *weight);

#endif
