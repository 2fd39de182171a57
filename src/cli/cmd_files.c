/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta inspect, verify and diff: what is in a file, is it whole, are two the same. */
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "cli/command.h"
#include "io/diff.h"
#include "io/inspect.h"
#include "io/verify.h"

static const struct option_table tables[] = {{"General", general_rows, GENERAL_ROWS, 0}};

static const struct option_set inspect_set = {
    .command = "sagitta inspect",
    .arguments = "FILE",
    .doc = "Show what is in a file: objects and shapes, metrics, and how it came to be."
           "\v"
           "Any HDF5 file will do; of those that Sagitta wrote the metrics are explained.\n\n"
           "  sagitta inspect run/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

static const struct option_set verify_set = {
    .command = "sagitta verify",
    .arguments = "FILE",
    .doc = "Check every checksum and every invariant of a file that Sagitta wrote."
           "\v"
           "Exit code 0: whole; 65: broken, the first fault is named; 74: cannot be read.\n\n"
           "  sagitta verify run/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 1,
    .max_arguments = 1,
};

static const struct option_set diff_set = {
    .command = "sagitta diff",
    .arguments = "A B",
    .doc =
        "Compare two files bit for bit: all datasets and attributes but those of /run."
        "\v"
        "Prints nothing and exits 0 when they are equal; otherwise names the first difference and "
        "exits 1.\n\n"
        "  sagitta diff one-rank/supports.h5 four-ranks/supports.h5",
    .tables = tables,
    .count = LENGTH(tables),
    .min_arguments = 2,
    .max_arguments = 2,
};

static int inspect_command(struct run *run, const void *options, const char **arguments)
{
  (void)run, (void)options;
  return file_inspect(arguments[0], stdout);
}

static int verify_command(struct run *run, const void *options, const char **arguments)
{
  (void)run;
  const struct general_options *o = options;
  return file_verify(arguments[0], o->quiet ? NULL : stdout);
}

static int diff_command(struct run *run, const void *options, const char **arguments)
{
  (void)run, (void)options;
  int equal = 0;
  TRY(file_diff(arguments[0], arguments[1], stdout, &equal));
  return equal ? OK : ERR_ANSWER;
}

const struct command command_inspect = {
    "inspect", "show what is in a file", &inspect_set, sizeof(struct general_options),
    0,         inspect_command};
const struct command command_verify = {"verify",    "check a file's checksums and invariants",
                                       &verify_set, sizeof(struct general_options),
                                       0,           verify_command};
const struct command command_diff = {"diff",    "compare two files bit for bit",
                                     &diff_set, sizeof(struct general_options),
                                     0,         diff_command};
