/* SPDX-License-Identifier: BSD-3-Clause
 * The machine's LAPACK, for reports: loaded when asked for, from OpenBLAS or the reference library.
 *
 * Floor: device.  Linked in, it would start threads and take memory in every rank of every job.
 * Nothing of this is promised to the bit. */
#ifndef TERMINAL_LAPACK_H
#define TERMINAL_LAPACK_H

#include "base/types.h"

/* Returns 1 when there is a LAPACK; *name <- which.  It is told how many threads to use. */
int lapack_load(int threads, const char **name);

/* counts[3] <- positive, negative and zero eigenvalues of a[n][n] (lower triangle, overwritten) by
 * LDL' with diagonal pivoting.  ERR_MEMORY, ERR_INTERNAL. */
int lapack_inertia(real *a, idx n, idx *counts);

/* eigenvalue[n] <- ascending; then vectors[found][n] <- eigenvectors of as many lowest as have
 * eigenvalue <= part * largest magnitude, at most `max`; found is their number and weak the number
 * without the limit.  a is overwritten.  vectors holds max * n reals. */
struct lapack_spectrum {
  real *a;
  idx n, max;
  real part;
  real *eigenvalue, *vectors;
  idx weak, found;
};
int lapack_spectrum(struct lapack_spectrum *s);

/* *bytes <- the most that one of these takes for n: their allocations, run dry. */
int lapack_bytes(idx n, gidx *bytes);

#endif
