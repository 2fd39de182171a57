/* SPDX-License-Identifier: BSD-3-Clause
 * The commands of sagitta-bench.
 *
 * Floor: bench. */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#include "job/run.h"

extern const struct command bench_route_command, bench_solve_command, bench_terminal_command,
    bench_update_command, bench_dense_command, bench_train_command, bench_harvest_command,
    bench_mixer_command, bench_serve_command, bench_write_command, bench_rates_command,
    bench_verify_command;

#endif
