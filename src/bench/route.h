/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench route: times of routing and codes, compared with a lower bound and with OpenBLAS.
 *
 * Floor: bench. */
#ifndef BENCH_ROUTE_H
#define BENCH_ROUTE_H

#include "base/options.h"
#include "base/types.h"
#include "device/device.h"

struct bench_route_options { /* options of route; other benchmarks use some of them */
  const char *rows, *filter, *precision;
  idx n_rows, atoms, columns, top_s;
  int stored;
};
enum { BENCH_SHAPE_ROWS = 4, BENCH_ROUTE_ROWS = 2, BENCH_PRODUCT_ROWS = 2 };
extern const struct option_row bench_shape_rows[BENCH_SHAPE_ROWS]; /* the last row is --top-s */
extern const struct option_row bench_route_rows[BENCH_ROUTE_ROWS]; /* only for route */
/* Options of dense and train; the last one is only for dense. */
extern const struct option_row bench_product_rows[BENCH_PRODUCT_ROWS];

struct json;
/* Options that all benchmarks share. */
struct bench_common {
  const char *cpu_variant, *device, *kernels;
  idx repeats, threads; /* repeats 1 .. 1000 */
  struct json *json;    /* NULL: print a table; otherwise an object to which entries are added */
};

/* Options of a device for rows of p columns.  Each rank of a machine has its own device. */
struct device_options bench_device(const struct bench_common *common, idx p, int local_rank);

/* Measure and print. */
int bench_route(const struct bench_route_options *o, const struct bench_common *common);

#endif
