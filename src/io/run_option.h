/* SPDX-License-Identifier: BSD-3-Clause
 * What an option was told in the run that wrote a file, from its /run.
 *
 * Floor: io.  Not collective. */
#ifndef IO_RUN_OPTION_H
#define IO_RUN_OPTION_H

#include "io/h5/h5.h"

/* *value <- of an option by its key, kept for the program's life; NULL: the file does not say.
 * ERR_MEMORY. */
int run_option_find(const struct h5_file *result, const char *key, const char **value);

#endif
