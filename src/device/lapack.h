/* SPDX-License-Identifier: BSD-3-Clause
 * The machine's LAPACK, for reports: loaded when asked for, from OpenBLAS or the reference library.
 *
 * Floor: device.  Linked in, it would start threads and take memory in every rank of every job.
 * Nothing here is promised to the bit. */
#ifndef DEVICE_LAPACK_H
#define DEVICE_LAPACK_H

#include "base/types.h"

/* 1 when a LAPACK is there; *name is which.  Its threads are set where it has any. */
int lapack_load(int threads, const char **name);

/* counts[3] <- positive, negative and zero eigenvalues of a[n][n] (lower triangle, overwritten) by
 * LDL' with diagonal pivoting.  ERR_MEMORY, ERR_INTERNAL. */
int lapack_inertia(real *a, idx n, idx *counts);

/* eigenvalue[n] <- ascending; then vectors[least][n] <- eigenvectors of as many lowest as have
 * eigenvalue <= part * largest magnitude, at most `most`; *found is their number and *weak the
 * number without the limit.  a is overwritten.  vectors holds most * n reals. */
struct lapack_spectrum {
  real *a;
  idx n, most;
  real part;
  real *eigenvalue, *vectors;
  idx weak, found;
};
int lapack_spectrum(struct lapack_spectrum *s);

#endif
