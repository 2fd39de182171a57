/* SPDX-License-Identifier: BSD-3-Clause
 * A capture with a paged pool, as `sagitta pack` writes it.
 *
 * Floor: io.  Not collective. */
#ifndef IO_CAPTURE_OUTPUT_H
#define IO_CAPTURE_OUTPUT_H

#include "io/outputs.h"
#include "model/attention.h"

extern const struct file_kind capture_kind;

struct capture_output {
  struct result_file result;
  struct h5_array q, k, v, token; /* grow, q excepted, by what is written to them in order */
};
/* Create a capture of n queries, with a pool of blocks of so many positions, at least `bytes`. */
int capture_output_create(struct capture_output *f, const char *path, const struct attention *a,
                          gidx n, idx size, gidx bytes);
/* The sequences: table[sequences][width], length[sequences], start[sequences + 1]; then publish. */
struct capture_sequences {
  gidx sequences, width;
  const idx *table;
  const gidx *length, *start;
};
int capture_output_finish(struct capture_output *f, const struct capture_sequences *s,
                          const struct run_fact *facts, int n_facts);

#endif
