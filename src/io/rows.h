/* SPDX-License-Identifier: BSD-3-Clause
 * Activation rows: read from any input or many, and rows.h5.
 *
 * Floor: io.  Reading is not collective: every rank opens the files that it reads.  Rank 0 alone
 * writes. */
#ifndef IO_ROWS_H
#define IO_ROWS_H

#include "io/inputs.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "io/shard_pool.h"
#include "io/shards.h"
#include "model/rows.h"

extern const struct file_kind rows_kind;

/* Rows first .. first + count - 1 of the whole are those of an input from row `from` on. */
struct rows_shard {
  struct input_array *input; /* owned, unless it is the pool's */
  gidx from, first, count;
  int pooled; /* the number of the pool's array + 1; 0: it is none, and stays open */
};
/* The rows of one input, or of several, one after another. */
struct rows_input {
  struct row_source source;
  const char **files; /* [n_files], borrowed: their names without /path, and lists of names */
  int n_files;
  struct rows_shard *shards; /* [count], owned; a virtual dataset itself has no rows */
  int count, capacity;
  struct shard_names names;
  struct shard_pool pool;
  char *name; /* of the source, owned */
};
/* Open rows by name, or by several: a text with a name, pattern or @LIST in each line (shards.h).
 * The default path is /rows.  A virtual dataset stands for its sources, which have to be in its
 * folder or below.  ERR_IO: cannot open; ERR_INPUT: no such dataset, wrong rank (not 2), type or
 * shape (no columns, or not those of the first shard), the same rows twice, damaged.
 *
 * With a communicator it is collective, with a status of each rank: then of more than POOL_OPEN
 * names each rank opens only what it reads, and as many at a time.  What it does together begins
 * with agreements: so a rank that failed before may go to the caller's next one. */
int rows_input_open(struct rows_input *f, struct comm *c, const char *text);
/* A mark of the sizes and times of all its files: jobs that read the same files have the same one.
 * 0: the system does not tell. */
uint64_t rows_input_mark(const struct rows_input *f);
/* The same of their inodes, too; 0 also where rows are of no files. */
uint64_t rows_input_facts(const struct rows_input *f);
void rows_input_close(struct rows_input *f);
/* ERR_INPUT when both have rows of one dataset; option_a, option_b are for the message. */
int rows_inputs_disjoint(const struct rows_input *a, const char *option_a,
                         const struct rows_input *b, const char *option_b);

/* Create rows.h5 for n rows of p columns. */
int rows_output_create(struct matrix_output *f, const char *path, gidx n, idx p);

#endif
