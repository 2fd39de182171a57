/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a program that has commands: help texts, commands, options and MPI.  Only here errors
 * are printed and the exit code is chosen.
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

/* main() calls this first: *run <- what the command line asks for.  Returns PROGRAM_RUNS if that is
 * a command, which main() then calls with *run; otherwise the exit code. */
enum { PROGRAM_RUNS = -1 };
int program_begin(const struct program_table *table, int argc, char **argv, struct run *run);
/* Then, with the command's status: print an error, end MPI.  Returns the exit code. */
int program_end(struct run *run, int status);

#endif
