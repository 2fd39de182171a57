/* SPDX-License-Identifier: BSD-3-Clause
 * Dense symmetric systems, every sum in the order of (N.19): the Cholesky factor, its inverse,
 * entries of the inverse matrix, and solves.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Matrices are column-major, entry (i, j) at [i + j * stride], stride >= n; only lower triangles
 * are read and written.  These plain loops are the references of device/dense.h. */
#ifndef MODEL_DENSE_H
#define MODEL_DENSE_H

#include "base/types.h"

/* Factor S = L L' in place.  pivot[n] <- the diagonal entries before their square roots.  Returns
 * n; or the index of the first pivot that is not finite or not > 0.  Then only the pivots before it
 * are valid. */
idx cholesky_reference(real *s, idx n, gidx stride, real *pivot);

/* Z = L^-1 in place: column j is unit vector j after the forward substitution of (N.5). */
void inverse_reference(real *l, idx n, gidx stride);

/* Entry (a, b) of (L L')^-1: the sum of Z_ka Z_kb by fma, k ascending from max(a, b). */
real inverse_entry(const real *z, idx n, gidx stride, idx a, idx b);

/* x[n] <- the solution of L L' x = b, in place and in the orders of (N.5). */
void cholesky_solve(const real *l, idx n, gidx stride, real *x);

#endif
