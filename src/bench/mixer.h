/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench mixer: times of calls of a gated delta net, compared with the peak rate of
 * instructions and, on a GPU, with copies of the states.
 *
 * Floor: bench. */
#ifndef BENCH_MIXER_H
#define BENCH_MIXER_H

#include "base/options.h"
#include "bench/route.h"

struct bench_mixer_options {
  const char *decay;
  idx streams, tokens, heads, key_heads, head_columns;
};
enum { BENCH_MIXER_ROWS = 6 };
extern const struct option_row bench_mixer_rows[BENCH_MIXER_ROWS];

/* Measure and print. */
int bench_mixer(const struct bench_mixer_options *o, const struct bench_common *common);

#endif
