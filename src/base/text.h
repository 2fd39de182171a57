/* SPDX-License-Identifier: BSD-3-Clause
 * Texts from files and command lines, made fit for a terminal: messages, the log and what commands
 * print about files go through here.
 *
 * Floor: base. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdio.h>

/* Replace by blanks what may command a terminal: control characters, of both ranges and in both of
 * their spellings, and those that turn the direction of writing; by '?' what is not UTF-8. */
void text_clean(char *text);

/* *code <- the character at `text`; returns its bytes, 0 when it is not UTF-8. */
int text_character(const char *text, unsigned *code);

/* Letters to change, add or drop to make one word of the other (Levenshtein); 64 for long ones. */
int text_distance(const char *a, const char *b);

/* Is there nothing that text_clean() would replace? */
int text_is_clean(const char *text);

/* fprintf() of a text that is cleaned, but for line ends at its beginning and end. */
void text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text that is written into memory: *out <- its stream.  text_close() ends it, and *text, of
 * *bytes, is then whole; the caller frees it, also after a failure.  ERR_MEMORY says that there is
 * no room for `what`. */
int text_open(FILE **out, char **text, size_t *bytes, const char *what);
int text_close(FILE *out, const char *what);

#endif
