/* SPDX-License-Identifier: BSD-3-Clause
 * A result file with one large float32 array, written in blocks: rows.h5 and dictionary.h5.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_MATRIX_H
#define IO_MATRIX_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/sink.h"

struct matrix_output {
  struct result_file result;
  struct h5_array array;
  struct matrix_sink sink; /* writes to the array, once the file is created; the struct must not
                            * move afterwards */
};
/* An upper bound of the bytes on disk of a file with this many values. */
gidx matrix_bytes(gidx values);
/* Create a file of this kind, and the array in it.  object_write() may add other objects until
 * matrix_output_finish(). */
int matrix_output_create(struct matrix_output *f, const char *path, const struct file_kind *kind,
                         const char *object, int rank, const gidx *shape);
/* Write entries first .. first + count - 1 of the first dimension; first must be where the last
 * call ended. */
int matrix_output_write(struct matrix_output *f, gidx first, gidx count, const float *values);
/* Publish.  ERR_INTERNAL: entries are missing. */
int matrix_output_finish(struct matrix_output *f, const struct run_fact *facts, int n_facts);
/* Close what an unfinished file has open; safe after matrix_output_finish() and on a zeroed
 * struct. */
void matrix_output_close(struct matrix_output *f);

#endif
