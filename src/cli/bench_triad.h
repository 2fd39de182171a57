/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta bench dense and bench train: products of dense matrices in their order (N.40, N.41), and
 * a step of training (N.43), each without anything around it.
 *
 * Floor: cli. */
#ifndef CLI_BENCH_TRIAD_H
#define CLI_BENCH_TRIAD_H

#include "cli/bench_route.h"

/* Measure and print, for the rows, columns and atoms of bench route: inputs are the columns,
 * outputs the atoms. */
int bench_triad(const struct bench_route_options *o, const struct bench_common *common);

/* The same with the atoms a row, on the ranks of c. */
struct comm;
int bench_train(const struct bench_route_options *o, const struct bench_common *common,
                struct comm *c);

#endif
