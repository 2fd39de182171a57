/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of training, batch after batch: read in windows, a pool at a time, in the order of
 * (N.43).
 *
 * Floor: train.  Every rank reads its share of a pool, and has all of it. */
#ifndef TRAIN_BATCHES_H
#define TRAIN_BATCHES_H

#include "base/worker.h"
#include "comm/comm.h"
#include "model/rows.h"
#include "model/shuffle.h"

struct batches {
  struct comm *c;                /* borrowed, as are the next two */
  const struct row_source *rows; /* the fitted ones */
  const real *mean;              /* [p]; NULL: none */
  int scale;                     /* rows are multiplied by 2^scale */
  struct shuffle shuffle;
  struct worker worker;
  float *pool; /* [SHUFFLE_ROWS][p] */
  idx *counts; /* [size] rows of the pool that each rank reads */
};

/* Arrays are the arena's; a dry one counts them. */
int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed);
/* Start the thread that reads; batches_close() is safe on a zeroed struct. */
int batches_open(struct batches *b);
void batches_close(struct batches *b);

/* x[count][p] <- the rows at positions first .. first + count - 1 of an epoch, centred and scaled,
 * on every rank.  ERR_INPUT names the lowest row that is not finite.  Collective. */
int batches_take(struct batches *b, gidx epoch, gidx first, idx count, float *x);

/* Read all rows once and check them; *hash <- theirs (model/identity.h).  Collective. */
int batches_hash(struct batches *b, uint64_t *hash);
/* *scale <- that of the rows (N.43).  Collective. */
int batches_scale(struct batches *b, int *scale);

#endif
