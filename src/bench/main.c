/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta-bench: the table of its commands. */
#include "base/status.h"
#include "bench/commands.h"
#include "cli/program.h"

static const struct command *const commands[] = {
    &bench_route_command, &bench_solve_command, &bench_terminal_command, &bench_update_command,
    &bench_dense_command, &bench_train_command, &bench_harvest_command,  &bench_mixer_command,
    &bench_serve_command, &bench_write_command, &bench_rates_command,    &bench_verify_command,
};

static const struct program_table program = {
    .name = "sagitta-bench",
    .usage = "Usage: sagitta-bench COMMAND [--OPTIONS]\n\n"
             "Measure each part of Sagitta's jobs alone, and compare it with a limit of the\n"
             "machine or with a peer.  The figures are printed to standard output.\n",
    .examples = "  For example:\n\n"
                "  sagitta-bench route --columns 384 --atoms 32768 --top-s 32\n"
                "  sagitta-bench solve --device cuda --systems 4096\n"
                "  sagitta-bench verify run/ --rows acts.h5\n\n",
    .commands = commands,
    .count = LENGTH(commands),
};

int main(int argc, char **argv)
{
  struct run run;
  int status = program_begin(&program, argc, argv, &run);
  if (status != PROGRAM_RUNS) return status;
  return program_end(&run, run.command->run(&run, run.options, run.arguments));
}
