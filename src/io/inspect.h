/* SPDX-License-Identifier: BSD-3-Clause
 * Parts of the page that `inspect` prints, for kinds of files that want their own.
 *
 * Floor: io; included by files_inspect.c and inspect_*.c only. */
#ifndef IO_INSPECT_H
#define IO_INSPECT_H

#include <stdio.h>

#include "io/h5.h"

/* Of a terminal.h5.  ERR_INPUT when something that it needs is missing. */
int inspect_terminal(const struct h5_file *f, FILE *out);

#endif
