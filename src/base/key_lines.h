/* SPDX-License-Identifier: BSD-3-Clause
 * Reading a text of lines "key = value", as options_bits() and options_lines() write it.
 *
 * Floor: base. */
#ifndef BASE_KEY_LINES_H
#define BASE_KEY_LINES_H

struct key_line {
  char key[64];
  const char *value; /* [length] in the text */
  int length;
};
/* *line <- the line at `at`.  Returns the start of the next line; NULL: there is no line at
 * `at`. */
const char *key_line_take(const char *at, struct key_line *line);
/* key_line_find(): is there a line with this key?  If so, *line <- it.  key_line_is(): does a line
 * have this value? */
int key_line_find(const char *text, const char *key, struct key_line *line);
int key_line_is(const struct key_line *line, const char *value, int length);

#endif
