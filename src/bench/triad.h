/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench dense: times products of dense matrices, whose sums have the order of (N.40) and
 * (N.41).
 *
 * Floor: bench. */
#ifndef BENCH_TRIAD_H
#define BENCH_TRIAD_H

#include "bench/route.h"

/* Measure and print.  The matrix is that of a dense layer with o->columns inputs and o->atoms
 * outputs; its batch has o->n_rows rows. */
int bench_triad(const struct bench_route_options *o, const struct bench_common *common);

#endif
