/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench rates: the rates of this machine (model/rates.h), from which --dry-run forecasts
 * times.
 *
 * Floor: bench. */
#ifndef BENCH_RATES_H
#define BENCH_RATES_H

#include "bench/route.h"
#include "bench/write.h"
#include "job/run.h"

/* Measure on all ranks at once, and print.  Collective. */
int bench_rates(const struct bench_write_options *o, const struct bench_common *common,
                struct run *run);

#endif
