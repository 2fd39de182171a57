/* SPDX-License-Identifier: BSD-3-Clause
 * Packing the sequences of captures into one paged pool, in which equal prefixes are stored once.
 *
 * Floor: harvest.  Knows no files.  Not collective. */
#ifndef HARVEST_PACK_H
#define HARVEST_PACK_H

#include "model/capture.h"
#include "model/pool.h"

/* Takes the pool, in order. */
struct pack_sink {
  void *self; /* borrowed */
  /* The next block of the pool: k[size][kv_heads][d], v[size][kv_heads][dv]. */
  int (*block)(void *self, idx block, const float *k, const float *v);
  /* The next queries, q[count][heads][d]. */
  int (*queries)(void *self, gidx first, idx count, const float *q);
  /* Tokens first .. first + count - 1 of all sequences, one after another. */
  int (*tokens)(void *self, gidx first, gidx count, const idx *token);
};

struct pack_task {
  const struct capture_source *const *captures; /* [count], all with the attention of the first */
  int count;
  idx size; /* positions per block */
  const struct pack_sink *sink;
};

/* Bounds on the number of blocks of the pool, including the reserved block 0.  *least: enough for
 * the longest sequence.  *most: enough for all sequences if no block is shared. */
void pack_bounds(const struct pack_task *task, gidx *least, gidx *most);

struct pack_result {
  gidx sequences, positions, queries;
  gidx blocks; /* in use, without the reserved one */
  gidx shared; /* blocks that sequences take from earlier ones, instead of storing their own */
  gidx unlike; /* blocks with the tokens of another block, but with other keys or values */
  gidx width;
  idx *table;           /* [sequences][width] */
  gidx *length, *start; /* [sequences], [sequences + 1] */
  struct arena arena;
};
/* Blocks are shared if tokens, keys and values are equal, to the bit.  ERR_INPUT: a capture has no
 * tokens, or another attention than the first.  Call pack_free() also when this fails. */
int pack_run(const struct pack_task *task, struct pack_result *result);
void pack_free(struct pack_result *r);

#endif
