/* SPDX-License-Identifier: BSD-3-Clause
 * Making texts from files and command lines safe for a terminal.  Messages, the log, and texts that
 * commands print about files pass through these functions.
 *
 * Floor: base. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdio.h>

/* Replace by blanks what may control a terminal: the control characters U+0000 .. U+001F and U+007F
 * .. U+009F, and characters that separate lines or change the direction of writing.  Replace bytes
 * that are not UTF-8 by '?'. */
void text_clean(char *text);

/* *code <- the character at `text`; returns its number of bytes, 0 if it is not UTF-8. */
int text_character(const char *text, unsigned *code);

/* The Levenshtein distance: the smallest number of letters to change, add or drop to turn one word
 * into the other.  64 if b has more than 63 letters. */
int text_distance(const char *a, const char *b);

/* Would text_clean() replace nothing? */
int text_is_clean(const char *text);

int text_ends_in(const char *text, const char *end);

/* fprintf() of a text after text_clean(); up to four line ends at its start, and up to four at its
 * end, are kept. */
void text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text that is written into memory: *out <- its stream.  After text_close(), *text is complete,
 * and has *bytes bytes.  The caller frees *text, also after a failure.  ERR_MEMORY says that there
 * is no room for `what`. */
int text_open(FILE **out, char **text, size_t *bytes, const char *what);
int text_close(FILE *out, const char *what);

#endif
