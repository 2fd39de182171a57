/* SPDX-License-Identifier: BSD-3-Clause
 * Print what sagitta-bench serve has measured, and its targets.
 *
 * Floor: bench. */
#ifndef BENCH_SERVE_REPORT_H
#define BENCH_SERVE_REPORT_H

#include "bench/serve.h"

enum serve_case { ENCODE, ALONE, OFF, STATIC, DYNAMIC, UNWATCHED, CASES };

struct serve_measured { /* NaN: not measured */
  double p50, p99, most, status, backlog;
  gidx requests, refused, lost, steps, target;
};

/* Print all cases as a table, or add them to the JSON object. */
void serve_report(const struct bench_serve_options *o, const struct bench_route_options *shape,
                  const struct bench_common *common, const struct serve_measured *results);

#endif
