/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench update: the joint update of fit (N.20), without its rows' routing and codes.
 *
 * Floor: bench. */
#ifndef BENCH_UPDATE_H
#define BENCH_UPDATE_H

#include "bench/route.h"

/* Measure and print, for the rows, atoms, columns and atoms a row of sagitta-bench route. */
int bench_update(const struct bench_route_options *o, const struct bench_common *common);

#endif
