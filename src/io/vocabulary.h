/* SPDX-License-Identifier: BSD-3-Clause
 * The words of a vocabulary: a text with a word in each line, or JSON, also of a tokenizer.
 *
 * Floor: io.  Not collective. */
#ifndef IO_VOCABULARY_H
#define IO_VOCABULARY_H

#include "base/types.h"

struct vocabulary {
  char **word; /* [n] by token; "" or NULL: none; owned */
  gidx n;
  int is_text; /* words are lines, so that one that has a line feed shifts those behind it */
};

/* Read a text, whose line i, counted from 0, is token i; or JSON, a list of words or an object that
 * gives each word its number, as vocab.json of a tokenizer, or a tokenizer.json.  Marks of
 * byte-level and SentencePiece vocabularies become "##".  vocabulary_free() follows also when it
 * fails.  ERR_IO; ERR_INPUT: JSON of another kind. */
int vocabulary_read(struct vocabulary *v, const char *path);
void vocabulary_free(struct vocabulary *v);

/* What the tokens of rows say of a vocabulary.  Start from a zeroed struct. */
struct vocabulary_use {
  unsigned char *seen;    /* [n] tokens that have no word, of which rows are; owned */
  gidx empty;             /* how many of them */
  gidx first_empty, last; /* the smallest of them, and the largest token of all */
};
/* Note tokens token[count]. */
int vocabulary_note(struct vocabulary_use *u, const struct vocabulary *v, const gidx *token,
                    gidx count);
/* Warn of lines that are empty where rows have the token, unless most lines are, and of tokens
 * behind the last word. */
void vocabulary_warn(const struct vocabulary_use *u, const struct vocabulary *v, const char *path);

#endif
