/* SPDX-License-Identifier: BSD-3-Clause
 * The machine's LAPACK, for reports: loaded when asked for, from OpenBLAS or the reference library.
 *
 * Floor: terminal.  Linked in, it would start threads and take memory in every rank of every job.
 * Nothing of this is promised to the bit, and nothing else depends on it: a routine that fails is
 * told in the report, with LAPACK's info, and is no error of the job. */
#ifndef TERMINAL_LAPACK_H
#define TERMINAL_LAPACK_H

#include "base/types.h"

/* Returns 1 when there is a LAPACK; *name <- which.  It is told how many threads to use. */
int lapack_load(int threads, const char **name);

/* The first routine that failed, and its info; routine NULL: none did. */
struct lapack_failure {
  const char *routine;
  int info;
};

/* counts[3] <- positive, negative and zero eigenvalues of a[n][n] (lower triangle, overwritten) by
 * LDL' with diagonal pivoting, unless *failure <- what failed.  ERR_MEMORY. */
int lapack_inertia(real *a, idx n, idx *counts, struct lapack_failure *failure);

/* eigenvalue[n] <- ascending; then vectors[found][n] <- eigenvectors of as many lowest as have
 * eigenvalue <= part * largest magnitude, at most `max`; found is their number and weak the number
 * without the limit.  a is overwritten.  vectors holds max * n reals.  What comes after a failure
 * is not there.  ERR_MEMORY. */
struct lapack_spectrum {
  real *a;
  idx n, max;
  real part;
  real *eigenvalue, *vectors;
  int has_values, has_vectors;
  idx weak, found;
  struct lapack_failure failure;
};
int lapack_spectrum(struct lapack_spectrum *s);

/* *bytes <- the most that one of these takes for n: their allocations, run dry. */
int lapack_bytes(idx n, gidx *bytes);

#endif
