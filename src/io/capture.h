/* SPDX-License-Identifier: BSD-3-Clause
 * Captures of attention: queries, keys and values of sequences, contiguous or in a paged pool.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * doc/formats.md lists the contents of a capture. */
#ifndef IO_CAPTURE_H
#define IO_CAPTURE_H

#include "base/memory.h"
#include "io/h5/h5.h"
#include "model/capture.h"

struct capture_input {
  struct capture_source source;
  char path[4096];
  struct h5_file h5;
  struct h5_array q, k, v, token;
  struct arena arena;
  gidx *start, *kv_start; /* [sequences + 1] start: first query; kv_start: first position of keys
                           * and values */
  gidx *length;           /* [sequences] */
  idx *table;             /* [sequences][width], NULL without a pool */
  gidx width;
  idx block;                /* positions in a block of the pool */
  float *block_k, *block_v; /* one block */
  idx *used;                /* [blocks] the most positions that a sequence has in each block of the
                             * pool */
  /* [heads], [kv_heads] the largest squared norms read so far (io/capture_size.h) */
  real *q_square, *k_square;
};
/* Open a capture by name; a folder stands for its capture.h5.  Call capture_input_close() also
 * after a failure.  ERR_IO: cannot open; ERR_INPUT: an object or attribute is missing or has
 * another type or shape, sizes do not agree, or a table names a block outside its pool; the message
 * names the place. */
int capture_input_open(struct capture_input *c, const char *name);
void capture_input_close(struct capture_input *c);
/* Check that the sequences of an open file fit its queries, keys and values.  Errors: as for
 * capture_input_open(). */
int capture_file_check(const struct h5_file *f);

#endif
