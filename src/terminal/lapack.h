/* SPDX-License-Identifier: BSD-3-Clause
 * The machine's LAPACK, for reports: loaded when needed, from OpenBLAS or the reference library.
 *
 * Floor: terminal.  If LAPACK were linked, it would start threads and take memory in every rank of
 * every job.  Its bits are not guaranteed, and nothing else depends on them.  If a routine fails,
 * the report has its name and LAPACK's info, and the job continues. */
#ifndef TERMINAL_LAPACK_H
#define TERMINAL_LAPACK_H

#include "base/types.h"

/* Returns 1 if there is a LAPACK; *name <- which.  OpenBLAS is set to use `threads` threads. */
int lapack_load(int threads, const char **name);

/* The first routine that failed, and its info; routine NULL: none failed. */
struct lapack_failure {
  const char *routine;
  int info;
};

/* counts[3] <- the numbers of positive, negative and zero eigenvalues of a[n][n] (lower triangle,
 * overwritten), by LDL' with diagonal pivoting; or *failure <- the routine that failed.
 * ERR_MEMORY. */
int lapack_inertia(real *a, idx n, idx *counts, struct lapack_failure *failure);

/* eigenvalue[n] <- the eigenvalues of a[n][n] (lower triangle, overwritten), ascending.  weak <-
 * the number of eigenvalues that are at most part * largest magnitude.  found <- min(weak, max);
 * vectors[found][n] <- eigenvectors of the `found` lowest eigenvalues.  vectors has room for max *
 * n reals.  After a failure has_values or has_vectors is 0.  ERR_MEMORY. */
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

/* *bytes <- what lapack_inertia() or lapack_spectrum() allocates for n, whichever is more. */
int lapack_bytes(idx n, gidx *bytes);

#endif
