/* SPDX-License-Identifier: BSD-3-Clause
 * The tokens of rows, and their words in a vocabulary.  In a file of rows, /token has the token's
 * number for each row, and /window the number of the stretch of text that contains the row.  A file
 * of tokens alone may be used instead.
 *
 * Floor: io.  Not collective. */
#ifndef IO_TOKENS_H
#define IO_TOKENS_H

#include <stdio.h>

#include "io/flat_file.h"
#include "io/h5/h5.h"
#include "io/vocabulary.h"

struct tokens {
  gidx n; /* rows; 0: not open */
  struct h5_file file;
  char *path;                    /* owned */
  struct h5_array token, window; /* window: not open if the file has none */
  struct flat_file flat;         /* for a .npy, whose integer type is dtype */
  char dtype[16];
  struct vocabulary words;
};

/* Open the tokens of a file of rows, which must have n rows as the supports called `name` do.
 * ERR_INPUT: the file has no tokens, or has another number of rows.  Call tokens_close() also after
 * a failure. */
int tokens_open(struct tokens *t, const char *rows, gidx n, const char *name);

/* Open a file with the tokens of n rows: FILE.npy of integers, or FILE.h5[:/path] (default
 * /token). */
int tokens_open_alone(struct tokens *t, const char *file, gidx n, const char *name);

/* As tokens_open(), for the file of rows of the run that wrote `result`, an open file with n rows.
 * If the run names no file of rows, several files, or one without tokens, *t stays closed.  If the
 * file is missing, or has other rows, a warning says so and *t stays closed.  ERR_MEMORY. */
int tokens_find(struct tokens *t, const struct h5_file *result, gidx n, const char *name);

/* Read a vocabulary, and warn if the tokens of the rows do not fit it. */
int tokens_name(struct tokens *t, const char *vocabulary);

/* Print a token's word, or its number without a vocabulary; in brackets if is_row.  A word such as
 * "##ing", which continues the word before it, is printed without a blank in front. */
void tokens_word(const struct tokens *t, gidx token, int is_row, FILE *out);
/* Print the token of a row in brackets, with at most `around` tokens of its window before and after
 * it: words, or numbers without a vocabulary. */
int tokens_print(const struct tokens *t, gidx row, int around, FILE *out);
/* ERR_IO: a .npy changed while it was read. */
int tokens_close(struct tokens *t);

#endif
