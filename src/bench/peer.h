/* SPDX-License-Identifier: BSD-3-Clause
 * Functions that benchmarks share: medians, and the times of two functions of OpenBLAS.
 * sagitta-bench route and dense compare with its matrix product, sagitta-bench terminal with its
 * Cholesky factor.
 *
 * Floor: bench. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "base/types.h"

/* The median of values[count], count >= 1.  Sorts the values. */
double median(double *values, int count);
/* The median of a[i] / b[i], count <= MAX_RATIOS.  a and b keep their order. */
enum { MAX_RATIOS = 1000 };
double median_ratio(const double *a, const double *b, int count);

enum { PEER_ROWS = 512 };

/* Seconds of the product rows[n][p] x atoms[k][p]' by sgemm; 0 when OpenBLAS is not installed.  The
 * rows are taken PEER_ROWS at a time; product[PEER_ROWS][k] is written again each time. */
double peer_sgemm(const float *rows, const float *atoms, idx n, idx k, idx p, float *product,
                  int threads);

/* Seconds of dpotrf: the Cholesky factor of a[n][n], in place, in the lower triangle; 0 when
 * OpenBLAS is not installed. */
double peer_potrf(real *a, idx n, int threads);

#endif
