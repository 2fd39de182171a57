/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta --describe: commands and their options as one JSON object, for completion, documents and
 * tests; doc/json.md has its entries.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "cli/command.h"

/* Print the object of commands[count], or of the one of this name; NULL: of all. */
void describe_print(const struct command *const *commands, int count, const char *name, FILE *out);

#endif
