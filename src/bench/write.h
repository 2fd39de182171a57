/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench write: the rate of a result that all ranks write, compared with a plain writer of
 * the same bytes.
 *
 * Floor: bench. */
#ifndef BENCH_WRITE_H
#define BENCH_WRITE_H

#include "bench/route.h"
#include "comm/comm.h"

struct bench_write_options {
  const char *output;
};
enum { BENCH_WRITE_ROWS = 1 };
extern const struct option_row bench_write_rows[BENCH_WRITE_ROWS];

/* Measure and print.  route: rows, atoms and atoms per row.  Collective. */
int bench_write(const struct bench_write_options *o, const struct bench_route_options *route,
                const struct bench_common *common, struct comm *c);

/* Write a result of the shape that `sagitta-bench rates` measures, several times.  *w <- the
 * shortest time to write its rows, the shortest time from then until it is published, both in
 * seconds, and the bytes of its supports and scores.  Collective. */
struct write_seconds {
  double rows, end, bytes;
};
int bench_write_once(const struct bench_write_options *o, const struct bench_common *common,
                     struct comm *c, struct write_seconds *w);

#endif
