/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a program that has commands: what it says of itself, the command, its options, MPI,
 * and the only place that prints an error and ends the job.
 *
 * Floor: cli. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "job/run.h"

struct program_table {
  const char *name;                      /* of the program */
  const char *usage, *examples;          /* of --help: before and behind the commands */
  const struct command *const *commands; /* [count], count > 0 */
  int count;
};

/* What main() does first: *run <- what the command line asks for.  Returns PROGRAM_RUNS where that
 * is a command, which main() calls with what *run has; else the exit code. */
enum { PROGRAM_RUNS = -1 };
int program_begin(const struct program_table *table, int argc, char **argv, struct run *run);
/* Then, with the status of the command: print an error, end MPI.  Returns the exit code. */
int program_end(struct run *run, int status);

#endif
