/* SPDX-License-Identifier: BSD-3-Clause
 * Functions and structs that the checks of all kinds of files share.
 *
 * Floor: io; included by verify.c, by the file of each kind (schema.h), and by the files that check
 * parts of a file.
 *
 * file_verify() reads every byte and compares types and shapes with the tables of schema.h.  Then
 * the check of each kind looks at the contents: ERR_INPUT names the first place where a promise of
 * doc/formats.md is broken. */
#ifndef IO_CHECK_H
#define IO_CHECK_H

#include <stdio.h>

#include "io/h5/h5.h"
#include "io/schema.h"

/* Rows of supports whose entries were checked.  Row first + i has the entries start[i] - start[0]
 * .. start[i + 1] - start[0] - 1 of the arrays. */
struct verify_rows {
  gidx first, n;
  const gidx *start; /* [n + 1] */
  const idx *atoms;
  const float *data, *score, *blocks; /* blocks: /supports/codes, of frames */
};
/* A receiver of these rows, called in ascending order of rows while they are read.  The
 * verification may still fail later, for example when a hash differs, so the receiver must not rely
 * on the rows before the verification has ended. */
struct verify_taker {
  void *self; /* borrowed */
  int (*take)(void *self, const struct verify_rows *rows);
};

/* A verification in progress. */
struct verify {
  struct h5_file *file;
  FILE *out;   /* gets a line for each check that passed; or NULL */
  int is_ours; /* written by Sagitta, so that all promises are checked */
  int leaves;  /* 1: the hashes of supports' entries are left to supports_check(), which reads these
                * entries anyway */
  const struct support_counts *counts; /* counts of entries of supports that were checked already
                                        * and are skipped here; NULL: none is skipped */
  const struct verify_taker *taker;    /* NULL: none */
  char kind[32];                       /* of the file; "": another program wrote it */
  struct dimensions dims;
};

/* Add a line to the report. */
void check_note(const struct verify *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Check that an attribute has the text `wanted`. */
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
