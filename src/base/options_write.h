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
 * Numbers that have no default and were not given are not written.  Their value is 0, which is
 * outside their range. */
void options_write(const struct option_set *set, const void *values, FILE *out);

/* The same lines without titles, and without options that have one of these flags. */
void options_lines(const struct option_set *set, const void *values, unsigned without, FILE *out);

/* Write the lines of options that may change bits of results, except options that name inputs.  A
 * real is written with the fewest digits that give its bits back. */
void options_bits(const struct option_set *set, const void *values, FILE *out);

/* The same values as entries of an open JSON object (json.h), in their types. */
void options_json(const struct option_set *set, const void *values, struct json *out);

/* Print every key with "--" before it, one per line: for shell completion. */
void options_list(const struct option_set *set, FILE *out);

/* Write the table's facts about each option, as entries of an open JSON array. */
void options_describe(const struct option_set *set, struct json *out);

#endif
