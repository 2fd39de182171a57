/* SPDX-License-Identifier: BSD-3-Clause
 * The words of a vocabulary: a text file with one word per line, or JSON, such as a tokenizer's.
 *
 * Floor: io.  Not collective. */
#ifndef IO_VOCABULARY_H
#define IO_VOCABULARY_H

#include "base/types.h"

struct vocabulary {
  char **word; /* [n] word of each token; "" or NULL: none; owned */
  gidx n;
  int is_text; /* words are lines of a text; a word that contains a line feed would shift the words
                * after it */
};

/* Read a text, whose line i, counted from 0, is token i; or JSON: a list of words, an object that
 * maps words to numbers (vocab.json of a tokenizer), or a tokenizer.json.  Marks of byte-level and
 * SentencePiece vocabularies become "##".  Call vocabulary_free() also after a failure.  ERR_IO;
 * ERR_INPUT: the file is not text, is too large, or is JSON of another kind. */
int vocabulary_read(struct vocabulary *v, const char *path);
void vocabulary_free(struct vocabulary *v);

/* Find out whether the tokens of rows fit a vocabulary.  Start from a zeroed struct. */
struct vocabulary_use {
  unsigned char *seen;    /* [n] 1: the token has no word, and occurs in rows; owned */
  gidx empty;             /* how many such tokens */
  gidx first_empty, last; /* the smallest such token; the largest token in rows */
};
/* Note tokens token[count]. */
int vocabulary_note(struct vocabulary_use *u, const struct vocabulary *v, const gidx *token,
                    gidx count);
/* Warn of tokens after the last word.  If the vocabulary is a text, also warn of tokens in rows
 * whose line is empty, unless most lines are empty. */
void vocabulary_warn(const struct vocabulary_use *u, const struct vocabulary *v, const char *path);

#endif
