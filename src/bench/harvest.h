/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench harvest: rates of attention, compared with the peak rate of fma and, on a GPU, with
 * copies in its memory.
 *
 * Floor: bench. */
#ifndef BENCH_HARVEST_H
#define BENCH_HARVEST_H

#include "base/options.h"
#include "bench/route.h"

struct bench_harvest_options {
  const char *cells;
  idx heads, kv_heads, head_columns, positions, queries, streams, page;
};
enum { BENCH_HARVEST_ROWS = 8 };
extern const struct option_row bench_harvest_rows[BENCH_HARVEST_ROWS];

/* Measure and print. */
int bench_harvest(const struct bench_harvest_options *o, const struct bench_common *common);

#endif
