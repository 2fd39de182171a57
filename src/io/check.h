/* SPDX-License-Identifier: BSD-3-Clause
 * What the checks of a file's contents share.
 *
 * Floor: io; included by verify.c and by the files of kinds.
 *
 * file_verify() reads every byte and compares types and shapes with the tables of schema.h.  Then
 * the check of each kind looks at the contents: ERR_INPUT names the first place where a promise of
 * doc/formats.md is broken. */
#ifndef IO_CHECK_H
#define IO_CHECK_H

#include <stdio.h>

#include "io/h5/h5.h"
#include "io/schema.h"

/* Rows of supports whose entries were checked: row first + i has start[i] .. start[i + 1] - 1, less
 * start[0], of the arrays. */
struct verify_rows {
  gidx first, n;
  const gidx *start; /* [n + 1] */
  const idx *atoms;
  const float *data, *score, *blocks; /* blocks: /supports/codes, of frames */
};
/* Who takes them, in ascending order, while they are read.  What is found later, such as another
 * hash, fails the verification: nobody relies on them before it has ended. */
struct verify_taker {
  void *self; /* borrowed */
  int (*take)(void *self, const struct verify_rows *rows);
};

/* A verification in progress. */
struct verify {
  struct h5_file *file;
  FILE *out;   /* where a line goes for each check that passed; or NULL */
  int is_ours; /* written by Sagitta, so that all promises are checked */
  int leaves;  /* hashes of the entries of supports to the check of these, which reads them */
  const struct support_counts *counts; /* of entries of supports, which were checked already, and
                                        * are left out; NULL: they were not */
  const struct verify_taker *taker;    /* NULL: nobody */
  char kind[32];                       /* of file; empty when foreign */
  struct dimensions dims;
};

/* Add a line to the report. */
void check_note(const struct verify *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Check that an attribute is this text. */
int check_text(const struct verify *v, const char *object, const char *name, const char *wanted);

/* Entries first .. first + count - 1 of an array's first dimension, width values each. */
struct value_block {
  const struct h5_array *array;
  gidx first, count, width;
  const float *values; /* [count][width] */
};
/* Call a check for all of an array, in blocks of about a megabyte. */
int check_blocks(const struct verify *v, const char *object,
                 int (*check)(const struct verify *v, const struct value_block *block));

#endif
