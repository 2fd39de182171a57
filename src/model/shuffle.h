/* SPDX-License-Identifier: BSD-3-Clause
 * The order in which training takes rows: every row once per epoch, while files are read in windows
 * of consecutive rows (N.43).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SHUFFLE_H
#define MODEL_SHUFFLE_H

#include "base/memory.h"

enum {
  SHUFFLE_WINDOW = 128, /* consecutive rows */
  SHUFFLE_POOL = 128,   /* windows of a pool, whose rows are mixed */
  SHUFFLE_ROWS = SHUFFLE_WINDOW * SHUFFLE_POOL
};

struct shuffle {
  uint64_t seed;
  gidx n, windows, pools;
  gidx epoch, pool;        /* the present pool, -1: none */
  struct shuffle_key *key; /* [windows] the windows, in the order of the epoch */
  struct shuffle_key *row; /* [SHUFFLE_ROWS] the rows of the pool */
  /* [rows] for each row of the pool, in shuffled order: its index among the rows of the pool's
   * windows */
  idx *at;
  idx rows;    /* rows of the pool */
  gidx before; /* number of rows in earlier pools of the epoch */
};

/* For n rows; arrays live in the arena. */
int shuffle_init(struct shuffle *s, struct arena *arena, gidx n, uint64_t seed);

/* Set the present pool to the pool that has position `row` (0 .. n - 1) of an epoch; *skip <- the
 * number of the pool's rows before this position. */
void shuffle_take(struct shuffle *s, gidx epoch, gidx row, idx *skip);

/* Does the present pool have position `row` of this epoch? */
int shuffle_has(const struct shuffle *s, gidx epoch, gidx row);

/* shuffle_windows() returns the number of windows of the present pool.  shuffle_window() gives the
 * rows of window i of the pool. */
idx shuffle_windows(const struct shuffle *s);
void shuffle_window(const struct shuffle *s, idx i, gidx *first, idx *count);

#endif
