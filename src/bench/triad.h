/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench dense: times products of dense matrices with the fixed order of sums of (N.40,
 * N.41).
 *
 * Floor: bench. */
#ifndef BENCH_TRIAD_H
#define BENCH_TRIAD_H

#include "bench/route.h"

/* Measure and print, for the rows, columns and atoms of `route`: the matrix is that of a dense
 * layer whose inputs are the columns and whose outputs are the atoms. */
int bench_triad(const struct bench_route_options *o, const struct bench_common *common);

#endif
