/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench train: times steps of training (N.43) alone, without reading rows or writing files.
 *
 * Floor: bench. */
#ifndef BENCH_TRAIN_H
#define BENCH_TRAIN_H

#include "bench/route.h"
#include "comm/comm.h"

/* Measure and print.  o: rows, columns, atoms, atoms per row and precision.  Collective. */
int bench_train(const struct bench_route_options *o, const struct bench_common *common,
                struct comm *c);

/* Steps for other benchmarks; a batch has o->n_rows rows.  bench_train_step() makes one step;
 * *scores <- the fraction of its time that scores took.  Collective. */
int bench_train_begin(const struct bench_route_options *o, const struct bench_common *common,
                      struct comm *c);
int bench_train_step(double *scores);
void bench_train_end(struct comm *c);

#endif
