/* SPDX-License-Identifier: BSD-3-Clause
 * A capture with a paged pool, as `sagitta pack` writes it.
 *
 * Floor: io.  Not collective. */
#ifndef IO_CAPTURE_OUTPUT_H
#define IO_CAPTURE_OUTPUT_H

#include "io/outputs.h"
#include "model/attention.h"

extern const struct file_kind capture_kind;

/* The sizes and types of a capture, known when it is created. */
struct capture_shape {
  struct attention attention;
  enum h5_type q, k, v; /* F32, F16 or BF16 */
  gidx n, positions;    /* queries; positions of all sequences */
  idx size;             /* positions of a block */
  gidx least, most;     /* the smallest and the largest possible number of blocks of the pool */
};

struct capture_output {
  struct result_file result;
  struct h5_array q, token, k, v; /* k and v get longer with each block that is written */
  uint16_t *half;                 /* [room] values to be written, as 16-bit floats; owned */
  gidx room;
};
/* Create a capture.  ERR_CREATE also if the file system lacks space for its queries, its tokens and
 * shape->least blocks. */
int capture_output_create(struct capture_output *f, const char *path,
                          const struct capture_shape *shape);
/* Write the next queries; write the next block.  Values must be representable in the array's type,
 * since they are not rounded. */
int capture_output_queries(struct capture_output *f, gidx first, idx count, const float *q);
int capture_output_block(struct capture_output *f, idx block, const float *k, const float *v);
/* The sequences: table[sequences][width], length[sequences], start[sequences + 1]. */
struct capture_sequences {
  gidx sequences, width;
  const idx *table;
  const gidx *length, *start;
};
int capture_output_finish(struct capture_output *f, const struct capture_sequences *s,
                          const struct run_fact *facts, int n_facts);

#endif
