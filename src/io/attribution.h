/* SPDX-License-Identifier: BSD-3-Clause
 * attribution.h5: which positions contribute to a score.  It is a CSR matrix with one row per entry
 * of the supports; such an entry, a row and one of its atoms, is called a pair.
 *
 * Floor: io.  Not collective; rank 0 alone writes. */
#ifndef IO_ATTRIBUTION_H
#define IO_ATTRIBUTION_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/identity.h"
#include "model/top.h"

extern const struct file_kind attribution_kind;

struct attribution_shape {
  gidx n, pairs;     /* rows, and entries of the supports */
  gidx longest;      /* positions of the longest sequence */
  idx heads, k, top; /* top: the most contributions in the list of a pair */
};

struct attribution_output {
  struct result_file result;
  struct attribution_shape shape;
  struct h5_array indptr, indices, data, sum, sequence;
  gidx *start, *column; /* of the block being written; start, column and value are owned */
  float *value;
  gidx start_room, column_room, value_room;
};
int attribution_output_create(struct attribution_output *f, const char *path,
                              const struct attribution_shape *shape);
/* Write the next rows with sequence[rows], and the next top->k pairs with sum[top->k]. */
int attribution_output_write(struct attribution_output *f, gidx rows, const gidx *sequence,
                             const real *sum, const struct top_rows *top);
/* Values that are complete after the last row. */
struct attribution_ending {
  const real *mean; /* [k] */
  /* Over all pairs (N.28), as in struct attribute_result.  error: the largest difference.  beyond:
   * the number of pairs with a large difference.  compared: the number of pairs whose sum was
   * compared with a routed score. */
  real error;
  gidx compared, beyond;
  struct identity inputs;
};
/* Write what remains, and publish. */
int attribution_output_finish(struct attribution_output *f, const struct attribution_ending *ending,
                              const struct run_fact *facts, int n_facts);
/* Give back what an unfinished file holds; safe on a zeroed struct. */
void attribution_output_close(struct attribution_output *f);

/* An open attribution.h5, from which single lists are read. */
struct attribution_input {
  char *name; /* owned */
  struct h5_file h5;
  int is_open;
  struct h5_array indptr, indices, data, sum, sequence;
  gidx n, pairs;
  idx heads, k, top;
  struct identity inputs;
  gidx *source; /* [top]; source and value are owned */
  float *value;
};
/* A folder stands for its attribution.h5.  Call attribution_input_close() also after a failure.
 * ERR_IO: cannot open; ERR_INPUT: an object is missing or has another type or shape. */
int attribution_input_open(struct attribution_input *f, const char *name);
void attribution_input_close(struct attribution_input *f);
/* *sequence <- the sequence of a row. */
int attribution_input_sequence(const struct attribution_input *f, gidx row, gidx *sequence);
/* *source, *value <- [*n] the contributions to a pair with the largest absolute values, at most
 * `most`, the largest first, valid until the next call; *sum <- the sum of all contributions. */
int attribution_input_list(const struct attribution_input *f, gidx pair, idx most, gidx **source,
                           float **value, idx *n, real *sum);

#endif
