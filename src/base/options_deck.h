/* SPDX-License-Identifier: BSD-3-Clause
 * Decks: text files of `key = value  # comment` lines.
 *
 * Floor: base.  A value may stand in double quotes, which keeps '#' and outer blanks. */
#ifndef BASE_OPTIONS_DECK_H
#define BASE_OPTIONS_DECK_H

/* Call entry(self, "DECK:LINE", key, value) for each line in order; a failure of it is returned.
 * Values are kept for the program's life.  ERR_IO when the deck cannot be read, ERR_USAGE for a
 * line that is not `key = value` and for a key that is set twice. */
int deck_read(const char *path,
              int (*entry)(void *self, const char *where, const char *key, const char *value),
              void *self);

/* The quote that a value needs in a deck: "\"" or "". */
const char *deck_quote(const char *value);

#endif
