/* SPDX-License-Identifier: BSD-3-Clause
 * The value of a command-line option in the run that wrote a file, read from /run.
 *
 * Floor: io.  Not collective. */
#ifndef IO_RUN_OPTION_H
#define IO_RUN_OPTION_H

#include "io/h5/h5.h"

/* *value <- the value of the option `key`; it is never freed.  NULL: the file does not give it.
 * ERR_MEMORY. */
int run_option_find(const struct h5_file *result, const char *key, const char **value);
/* *is <- was the run given --row-range?  ERR_MEMORY. */
int run_is_of_range(const struct h5_file *result, int *is);

#endif
