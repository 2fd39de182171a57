/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta: the table of commands, and main(). */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/program.h"

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

static const struct program_table program = {
    .name = "sagitta",
    .usage = "Usage: sagitta COMMAND [ARGUMENTS] [--OPTIONS]\n"
             "       mpirun -n 4 sagitta encode DECK\n\n"
             "Describe activation rows as sparse sums of dictionary atoms, with exact scores\n"
             "and with the same bits on any number of ranks.\n",
    .examples = "  A first session:\n\n"
                "  mpirun -n 2 sagitta fit --rows acts.h5 --atoms 1024 --top-s 16 --output run/\n"
                "  mpirun -n 2 sagitta encode --rows unseen.h5 --dictionary run/ --output codes/\n"
                "  sagitta inspect codes/supports.h5\n"
                "  sagitta inspect run/ --atom 17 --rows acts.h5\n\n"
                "`sagitta-bench --help` is about how fast the parts of a job are.\n\n",
    .commands = commands,
    .count = LENGTH(commands),
};

int main(int argc, char **argv)
{
  struct run run;
  if (argc > 1 && strcmp(argv[1], "bench") == 0) {
    fputs("sagitta: 'bench' is a program of its own: 'sagitta-bench --help' lists its commands\n",
          stderr);
    return ERR_USAGE;
  }
  int status = program_begin(&program, argc, argv, &run);
  if (status != PROGRAM_RUNS) return status;
  return program_end(&run, run.command->run(&run, run.options, run.arguments));
}
