/* SPDX-License-Identifier: BSD-3-Clause
 * Activation rows: read from any input, and rows.h5.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * Rank 0 alone writes. */
#ifndef IO_ROWS_H
#define IO_ROWS_H

#include "io/inputs.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/rows.h"

extern const struct file_kind rows_kind;

struct rows_input {
  struct row_source source;
  const char *file;          /* borrowed: the name without /path */
  struct input_array *input; /* owned */
};
/* Open rows by name; the default path is /rows.  ERR_IO: cannot open; ERR_INPUT: no such dataset,
 * wrong rank (not 2), type or shape (no columns), damaged. */
int rows_input_open(struct rows_input *f, const char *name);
void rows_input_close(struct rows_input *f);

/* Create rows.h5 for n rows of p columns. */
int rows_output_create(struct matrix_output *f, const char *path, gidx n, idx p);

#endif
