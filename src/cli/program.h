/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a program that has commands: help texts, commands, options and MPI.  It prints the
 * errors that functions return, and chooses the exit code.
 *
 * Floor: cli. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "job/run.h"

struct program_table {
  const char *name;                      /* of the program */
  const char *usage, *examples;          /* of --help: before and after the list of commands */
  const struct command *const *commands; /* [count], count > 0 */
  int count;
};

/* main() calls this first.  If the command line asks for a command, *run <- what the command needs,
 * and the result is PROGRAM_RUNS: main() then calls run->command->run().  Otherwise, or after a
 * failure, the result is the exit code. */
enum { PROGRAM_RUNS = -1 };
int program_begin(const struct program_table *table, int argc, char **argv, struct run *run);
/* main() calls this last, with the command's status.  Prints an error, if there is one, and ends
 * MPI.  Returns the exit code; most failures of a job end the process here instead. */
int program_end(struct run *run, int status);

#endif
