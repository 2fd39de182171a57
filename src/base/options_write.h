/* SPDX-License-Identifier: BSD-3-Clause
 * What is written of a table of options and of their values: decks, JSON and lists.
 *
 * Floor: base. */
#ifndef BASE_OPTIONS_WRITE_H
#define BASE_OPTIONS_WRITE_H

#include <stdio.h>

#include "base/json.h"
#include "base/options.h"

/* Write a deck that repeats the run: every option that has a value, in the groups of the tables.  A
 * number without a default that was not given is 0, out of its range, and has none. */
void options_write(const struct option_set *set, const void *values, FILE *out);

/* The same lines without titles, and without options that have one of these flags. */
void options_lines(const struct option_set *set, const void *values, unsigned without, FILE *out);

/* The lines of options that may change bits, but of those that name inputs; a real has as few
 * digits as give its bits back. */
void options_bits(const struct option_set *set, const void *values, FILE *out);

/* The same values as entries of an object that is being written (json.h), in their types. */
void options_json(const struct option_set *set, const void *values, struct json *out);

/* Print every key, one a line, preceded by "--": for shell completion. */
void options_list(const struct option_set *set, FILE *out);

/* Write what the tables say of each option, as entries of an array that is being written. */
void options_describe(const struct option_set *set, struct json *out);

#endif
