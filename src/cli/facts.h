/* SPDX-License-Identifier: BSD-3-Clause
 * What a command prints with --json: one object for programs; doc/formats.md has its entries.
 *
 * Floor: cli.  Used by rank 0 alone; not collective. */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

#include "base/json.h"
#include "cli/command.h"

/* Is the object asked for? */
int facts_wanted(const struct run *run);

/* Begin an object with what all of them have. */
void facts_head(struct json *j, const char *command);

/* Begin the object, with what all commands say; facts_end() ends it and prints it to stdout.  So a
 * command that fails between them prints nothing.  ERR_MEMORY. */
int facts_begin(const struct run *run, struct json *j);
int facts_end(struct json *j);

/* Has the command printed its object? */
int facts_are_printed(void);

#endif
