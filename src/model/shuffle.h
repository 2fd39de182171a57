/* SPDX-License-Identifier: BSD-3-Clause
 * The order in which training goes through rows: every row once in an epoch, and files are read in
 * windows (N.43).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SHUFFLE_H
#define MODEL_SHUFFLE_H

#include "base/memory.h"

enum {
  SHUFFLE_WINDOW = 128, /* consecutive rows */
  SHUFFLE_POOL = 128,   /* windows whose rows are mixed */
  SHUFFLE_ROWS = SHUFFLE_WINDOW * SHUFFLE_POOL
};

struct shuffle {
  uint64_t seed;
  gidx n, windows, pools;
  gidx epoch, pool;        /* at hand, -1: none */
  struct shuffle_key *key; /* [windows] of the epoch, in its order */
  struct shuffle_key *row; /* [SHUFFLE_ROWS] of the pool */
  idx *at;                 /* [rows] places of the pool's rows in its windows, in their order */
  idx rows;                /* of the pool */
  gidx before;             /* rows of the epoch before it */
};

/* For n rows; arrays are the arena's. */
int shuffle_init(struct shuffle *s, struct arena *arena, gidx n, uint64_t seed);

/* Take the pool that has position `row`, 0 .. n - 1, of an epoch; *skip <- the rows of the pool
 * before it. */
void shuffle_take(struct shuffle *s, gidx epoch, gidx row, idx *skip);

/* Has the pool at hand this position? */
int shuffle_has(const struct shuffle *s, gidx epoch, gidx row);

/* Windows of the pool at hand; the rows of the i-th, in the order in which the pool has them. */
idx shuffle_windows(const struct shuffle *s);
void shuffle_window(const struct shuffle *s, idx i, gidx *first, idx *count);

#endif
