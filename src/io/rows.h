/* SPDX-License-Identifier: BSD-3-Clause
 * Activation rows: reading them from one input or many, and writing rows.h5.
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

/* A shard: rows first .. first + count - 1 of the whole are `count` rows of an input, beginning
 * with its row `from`. */
struct rows_shard {
  struct input_array *input; /* owned, unless `pooled` */
  gidx from, first, count;
  int pooled; /* 1 + the index of its array in the pool (shard_pool.h); 0: not in the pool, stays
               * open */
};
/* The rows of one input, or of several, one after another. */
struct rows_input {
  struct row_source source;
  const char **files; /* [n_files], borrowed: the files of rows, without /path, and the files @LIST,
                       * which list names */
  int n_files;
  struct rows_shard *shards; /* [count], owned; a virtual dataset is a shard without rows, and its
                              * sources follow it */
  int count, capacity;
  struct shard_names names;
  struct shard_pool pool;
  char *name; /* of the source, owned */
};
/* Open rows by a text with a name, pattern or @LIST in each line (shards.h).  The default path is
 * /rows.  A virtual dataset stands for its sources, which must be in its folder or below.  ERR_IO:
 * cannot open; ERR_INPUT: a dataset is missing or damaged, is not a matrix of floats, has no
 * columns, or has another number of columns than the first shard; or the same rows are named twice.
 *
 * If c is not NULL, the call is collective.  Its collective steps fail on all ranks or on none;
 * later steps may fail on single ranks, so the caller must agree on the status.  With more than
 * POOL_OPEN names, each rank opens only the files that it reads, at most POOL_OPEN at a time. */
int rows_input_open(struct rows_input *f, struct comm *c, const char *text);
/* A mark: a hash of the sizes and times of all files, which is equal for jobs that read the same
 * files.  0: not known. */
uint64_t rows_input_mark(const struct rows_input *f);
/* The same, with inodes too; 0 also if the rows are not read from files. */
uint64_t rows_input_facts(const struct rows_input *f);
void rows_input_close(struct rows_input *f);
/* ERR_USAGE: both read the same rows of a dataset; option_a and option_b are for the message. */
int rows_inputs_disjoint(const struct rows_input *a, const char *option_a,
                         const struct rows_input *b, const char *option_b);

/* Create rows.h5 for n rows of p columns. */
int rows_output_create(struct matrix_output *f, const char *path, gidx n, idx p);

#endif
