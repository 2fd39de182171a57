/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench terminal: times the dense work of `sagitta terminal`, and on a CPU also dpotrf of
 * OpenBLAS.
 *
 * Floor: bench. */
#ifndef BENCH_DENSE_H
#define BENCH_DENSE_H

#include "base/options.h"
#include "base/types.h"
#include "bench/route.h"

struct bench_dense_options {
  idx schur, panel;
};
enum { BENCH_DENSE_ROWS = 2 };
extern const struct option_row bench_dense_rows[BENCH_DENSE_ROWS];

/* Measure and print. */
int bench_dense(const struct bench_dense_options *o, const struct bench_common *common);

#endif
