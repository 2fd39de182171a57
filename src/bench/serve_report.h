/* SPDX-License-Identifier: BSD-3-Clause
 * Prints the results and goals of sagitta-bench serve.
 *
 * Floor: bench. */
#ifndef BENCH_SERVE_REPORT_H
#define BENCH_SERVE_REPORT_H

#include "bench/serve.h"

enum serve_case { ENCODE, ALONE, OFF, STATIC, DYNAMIC, UNWATCHED, CASES };

/* Results of one case; NaN: not measured. */
struct serve_measured {
  /* p50, p99, most: median, 99th percentile and maximum of the latency of requests, in ms.  status:
   * the maximum latency of status requests, in ms.  backlog: rows of the backlog per second. */
  double p50, p99, most, status, backlog;
  gidx requests, refused, lost, steps, target; /* target: rows of a step, as the server chose */
};

/* Print all cases as a table, or add them to the JSON object. */
void serve_report(const struct bench_serve_options *o, const struct bench_route_options *shape,
                  const struct bench_common *common, const struct serve_measured *results);

#endif
