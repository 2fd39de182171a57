/* SPDX-License-Identifier: BSD-3-Clause
 * What this program is made of, and the job of the batch system that it runs in.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_ABOUT_H
#define CLI_ABOUT_H

#include <stdio.h>

#include "job/run.h"

/* --version: the program and its version in the first line, then a line for each of the others. */
void about_print(const char *name, FILE *out);

/* Without a name.  Its log() writes a line: version, revision, libraries, and the job. */
extern const struct program about_program;

/* --describe: print commands[count] and their options as one JSON object, for completion,
 * documents and tests, or the command of this name; NULL: all.  doc/json.md has its entries. */
void describe_print(const struct command *const *commands, int count, const char *name, FILE *out);

#endif
