/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench update: times the joint update of fit (N.20) alone, without routing and codes.
 *
 * Floor: bench. */
#ifndef BENCH_UPDATE_H
#define BENCH_UPDATE_H

#include "bench/route.h"

/* Measure and print.  o: rows, atoms, columns and atoms per row. */
int bench_update(const struct bench_route_options *o, const struct bench_common *common);

#endif
