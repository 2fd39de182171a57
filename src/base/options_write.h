/* SPDX-License-Identifier: BSD-3-Clause
 * Writing a table of options and their values: as decks, JSON and lists.
 *
 * Floor: base. */
#ifndef BASE_OPTIONS_WRITE_H
#define BASE_OPTIONS_WRITE_H

#include <stdio.h>

#include "base/json.h"
#include "base/options.h"

/* Write a deck that repeats the run: every option that has a value, in the groups of the tables.
 * An OPTION_INT that has no default and was not given is not written if its value, 0, is outside
 * its range. */
void options_write(const struct option_set *set, const void *values, FILE *out);

/* The same lines without titles, and without options that have one of the flags `without`. */
void options_lines(const struct option_set *set, const void *values, unsigned without, FILE *out);

/* Write the lines of options that may change bits of results, except options that name inputs.  A
 * real is written with 15 to 17 digits, the fewest of these that give its bits back. */
void options_bits(const struct option_set *set, const void *values, FILE *out);

/* The values that options_write() writes, as entries of an open JSON object (json.h), in their
 * types. */
void options_json(const struct option_set *set, const void *values, struct json *out);

/* Print every key with "--" before it, one per line: for shell completion. */
void options_list(const struct option_set *set, FILE *out);

/* Write the table's facts about each option, as entries of an open JSON array. */
void options_describe(const struct option_set *set, struct json *out);

#endif
