/* SPDX-License-Identifier: BSD-3-Clause
 * What sagitta-bench serve has measured, beside what it should be.
 *
 * Floor: bench. */
#ifndef BENCH_SERVE_REPORT_H
#define BENCH_SERVE_REPORT_H

#include "bench/serve.h"

enum serve_case { ENCODE, ALONE, OFF, STATIC, DYNAMIC, UNWATCHED, CASES };

struct serve_measured { /* NaN where it has none */
  double p50, p99, most, status, backlog;
  gidx requests, refused, lost, steps, target;
};

/* Print all cases, as lines or as facts. */
void serve_report(const struct bench_serve_options *o, const struct bench_route_options *shape,
                  const struct bench_common *common, const struct serve_measured *results);

#endif
