/* SPDX-License-Identifier: BSD-3-Clause
 * Commands: one table row each, and what they share.
 *
 * Floor: cli.  Commands join jobs, which know no files, with the io floor. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"
#include "device/device.h"
#include "job/facts.h"
#include "job/run.h"

/* Options that several commands share: a struct and its table each. */
struct general_options { /* all commands; at the begin of their options structs */
  int quiet, verbose, json;
  idx progress_fd; /* 0 once it is open: used.in has none */
  real deadline;
};
struct compute_options {
  idx tile, block, threads;
  const char *cpu_variant, *filter, *device, *kernels, *grid;
};
extern const struct option_row general_rows[], compute_rows[];
extern const struct option_row output_rows[], folder_rows[]; /* a folder or a file; a folder */
enum { GENERAL_ROWS = 5, OUTPUT_ROWS = 2, COMPUTE_ROWS = 8 };

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

#endif
