/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench serve: the latency of live requests, and the rate of a backlog at the same time.
 *
 * Floor: bench. */
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

#include "bench/route.h"
#include "comm/comm.h"

struct bench_serve_options {
  idx streams, quantum, budget;
  real rate, seconds, target_ms;
};
enum { BENCH_SERVE_ROWS = 6 };
extern const struct option_row bench_serve_rows[BENCH_SERVE_ROWS];

/* Measure and print.  shape: atoms, columns, atoms per row; its n_rows is the largest number of
 * rows of a step. */
int bench_serve(const struct bench_serve_options *o, const struct bench_route_options *shape,
                const struct bench_common *common, struct comm *c);

#endif
