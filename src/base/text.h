/* SPDX-License-Identifier: BSD-3-Clause
 * Making texts from files and command lines safe for a terminal.  Messages, the log, and what
 * commands print about files pass through here.
 *
 * Floor: base. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdio.h>

/* Replace what may control a terminal by blanks: control characters, of both ranges and in both
 * encodings, and characters that change the direction of writing.  Replace what is not UTF-8 by
 * '?'. */
void text_clean(char *text);

/* *code <- the character at `text`; returns its bytes, 0 if it is not UTF-8. */
int text_character(const char *text, unsigned *code);

/* The Levenshtein distance: letters to change, add or drop to make one word the other; 64 for long
 * words. */
int text_distance(const char *a, const char *b);

/* Would text_clean() replace nothing? */
int text_is_clean(const char *text);

int text_ends_in(const char *text, const char *end);

/* fprintf() of a text after text_clean(); line ends at its start and end are kept. */
void text_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A text that is written into memory: *out <- its stream.  After text_close(), *text of *bytes is
 * complete.  The caller frees *text, also after a failure.  ERR_MEMORY says that there is no room
 * for `what`. */
int text_open(FILE **out, char **text, size_t *bytes, const char *what);
int text_close(FILE *out, const char *what);

#endif
