/* SPDX-License-Identifier: BSD-3-Clause
 * The tokens that rows are of: /token of a file of rows, an integer for each row, and /window, the
 * stretch of the text that each row is in; or tokens alone; and the words of a vocabulary.
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
  struct h5_array token, window; /* window: not open where there is none */
  struct flat_file flat;         /* of a .npy, whose whole numbers are as dtype says */
  char dtype[16];
  struct vocabulary words;
};

/* Open the tokens of a file of n rows, of which supports called `name` are.  ERR_INPUT: it has
 * none, or those of other rows.  tokens_close() follows also when it fails. */
int tokens_open(struct tokens *t, const char *rows, gidx n, const char *name);

/* Open a file of the tokens of n rows: FILE.npy of whole numbers, or FILE.h5[:/path], /token. */
int tokens_open_alone(struct tokens *t, const char *file, gidx n, const char *name);

/* The same as tokens_open() for the file of rows that the run names which wrote `result`, an open
 * file with n rows.  Where it names none, or one without tokens, *t stays closed; where the file is
 * not there, or is of other rows, a warning says so.  ERR_MEMORY. */
int tokens_find(struct tokens *t, const struct h5_file *result, gidx n, const char *name);

/* Read a vocabulary, and warn where the rows' tokens do not fit it. */
int tokens_name(struct tokens *t, const char *vocabulary);

/* Print a token, in brackets where it is a row's own: its word, or its number without a vocabulary;
 * a word that continues the one before it, as "##ing", stands close to that. */
void tokens_word(const struct tokens *t, gidx token, int is_row, FILE *out);
/* Print the token of a row in brackets, and at most so many before and behind it in its window:
 * their words, or their numbers without a vocabulary. */
int tokens_print(const struct tokens *t, gidx row, int around, FILE *out);
/* ERR_IO: a .npy changed while it was read. */
int tokens_close(struct tokens *t);

#endif
