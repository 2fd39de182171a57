/* SPDX-License-Identifier: BSD-3-Clause
 * The machine's LAPACK, for reports: loaded when needed, from OpenBLAS or the reference library.
 *
 * Floor: terminal.  If it were linked, it would start threads and take memory in every rank of
 * every job.  Its bits are not guaranteed, and nothing else depends on them: a routine that fails
 * is named in the report, with LAPACK's info, and is no error of the job. */
#ifndef TERMINAL_LAPACK_H
#define TERMINAL_LAPACK_H

#include "base/types.h"

/* Returns 1 if there is a LAPACK; *name <- which.  It is set to use so many threads. */
int lapack_load(int threads, const char **name);

/* The first routine that failed, and its info; routine NULL: none failed. */
struct lapack_failure {
  const char *routine;
  int info;
};

/* counts[3] <- the numbers of positive, negative and zero eigenvalues of a[n][n] (lower triangle,
 * overwritten), by LDL' with diagonal pivoting; or *failure <- what failed.  ERR_MEMORY. */
int lapack_inertia(real *a, idx n, idx *counts, struct lapack_failure *failure);

/* eigenvalue[n] <- ascending.  weak <- how many eigenvalues are at most part * largest magnitude;
 * vectors[found][n] <- eigenvectors of the lowest of these, at most `max`.  a is overwritten;
 * vectors has room for max * n reals.  Results after a failure are missing.  ERR_MEMORY. */
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

/* *bytes <- the most that one of these takes for n, by running their allocations dry. */
int lapack_bytes(idx n, gidx *bytes);

#endif
