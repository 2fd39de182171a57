/* SPDX-License-Identifier: BSD-3-Clause
 * Decks: text files of `key = value  # comment` lines.
 *
 * Floor: base.
 *
 * A value in double quotes may contain '#' and outer blanks; in it, two double quotes stand for
 * one. */
#ifndef BASE_OPTIONS_DECK_H
#define BASE_OPTIONS_DECK_H

#include <stdio.h>

/* Call entry(self, "DECK:LINE", key, value) for each line in order, until one call fails; its
 * failure is returned.  Values are kept for the program's life.  ERR_IO when the deck cannot be
 * read, ERR_USAGE for a line that is not `key = value` and for a key that is set twice. */
int deck_read(const char *path,
              int (*entry)(void *self, const char *where, const char *key, const char *value),
              void *self);

/* Write a value so that deck_read() gives it back: in quotes where it needs them. */
void deck_value_write(const char *value, FILE *out);

#endif
