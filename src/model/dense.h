/* SPDX-License-Identifier: BSD-3-Clause
 * Dense symmetric systems in exact order (N.19): Cholesky factor, its inverse, entries of the
 * inverse matrix, solves.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Matrices are column-major, entry (i, j) at [i + j * stride], stride >= n; only lower triangles
 * are read and written.  These are the references of device/dense.h: plain loops. */
#ifndef MODEL_DENSE_H
#define MODEL_DENSE_H

#include "base/types.h"

/* S = L L' in place.  pivot[n] are the accumulators before their square roots.  Returns n, or the
 * first pivot that is not finite or not > 0: the pivots before it are right, all else is not. */
idx cholesky_reference(real *s, idx n, gidx stride, real *pivot);

/* Z = L^-1 in place: column j is the forward substitution (N.5) of unit vector j. */
void inverse_reference(real *l, idx n, gidx stride);

/* Entry (a, b) of (L L')^-1: the chain over k, ascending from max(a, b), of fma(Z_ka, Z_kb). */
real inverse_entry(const real *z, idx n, gidx stride, idx a, idx b);

/* x[n] <- solution of L L' x = b, in place (N.5's orders). */
void cholesky_solve(const real *l, idx n, gidx stride, real *x);

#endif
