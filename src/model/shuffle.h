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
  SHUFFLE_POOL = 128,   /* windows whose rows are mixed, a pool */
  SHUFFLE_ROWS = SHUFFLE_WINDOW * SHUFFLE_POOL
};

struct shuffle {
  uint64_t seed;
  gidx n, windows, pools;
  gidx epoch, pool;        /* the present pool, -1: none */
  struct shuffle_key *key; /* [windows] of the epoch, in its order */
  struct shuffle_key *row; /* [SHUFFLE_ROWS] of the pool */
  idx *at;                 /* [rows] positions of the pool's rows in its windows, in shuffled
                            * order */
  idx rows;                /* rows of the pool */
  gidx before;             /* rows of the epoch before the pool */
};

/* For n rows; arrays live in the arena. */
int shuffle_init(struct shuffle *s, struct arena *arena, gidx n, uint64_t seed);

/* Take the pool with position `row`, 0 .. n - 1, of an epoch; *skip <- the number of the pool's
 * rows before that position. */
void shuffle_take(struct shuffle *s, gidx epoch, gidx row, idx *skip);

/* Does the present pool have this position? */
int shuffle_has(const struct shuffle *s, gidx epoch, gidx row);

/* The number of windows of the present pool; and the rows of the i-th, in the pool's order. */
idx shuffle_windows(const struct shuffle *s);
void shuffle_window(const struct shuffle *s, idx i, gidx *first, idx *count);

#endif
