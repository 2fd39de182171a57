/* SPDX-License-Identifier: BSD-3-Clause
 * Decks: text files of `key = value # comment` lines.
 *
 * Floor: base.
 *
 * A value in double quotes may contain '#' and blanks at its ends; two double quotes in it mean
 * one. */
#ifndef BASE_OPTIONS_CONFIG_H
#define BASE_OPTIONS_CONFIG_H

#include <stddef.h>
#include <stdio.h>

enum { MAX_DECK = 1 << 20 }; /* bytes */

/* text[MAX_DECK] <- the deck, *length <- its bytes.  ERR_IO: it cannot be read, or changed while it
 * was read; ERR_USAGE: it is too long. */
int config_read(const char *path, char *text, size_t *length);

/* A line of a deck.  value is kept for the program's life. */
struct config_entry {
  const char *where; /* DECK:LINE */
  const char *key, *value;
  int earlier; /* the earlier line that set the key; 0: none */
};
/* Call entry() for each line of text[length] in order, until a call fails; that failure is
 * returned.  path is for messages.  ERR_USAGE: a line is not text, or not `key = value`. */
int config_parse(const char *path, const char *text, size_t length,
                 int (*entry)(void *self, const struct config_entry *e), void *self);

/* Are these bytes text?  A deck must be text; a data file is not. */
int config_is_text(const char *bytes, size_t length);

/* Write a value in the form from which config_parse() reads the same value; in quotes if it needs
 * them. */
void config_value_write(const char *value, size_t length, FILE *out);

#endif
