/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of training, batch after batch: read in windows, a pool at a time, in the order of
 * (N.43).
 *
 * Floor: train.  Every rank reads its share of a pool, and its device has all of it.
 *
 * The share of the next pool is read by a thread while steps are done with the one at hand; who
 * uses files meanwhile calls batches_rest() first. */
#ifndef TRAIN_BATCHES_H
#define TRAIN_BATCHES_H

#include "base/worker.h"
#include "comm/comm.h"
#include "device/buffer.h"
#include "model/rows.h"
#include "model/shuffle.h"

struct batches {
  struct comm *c;                /* borrowed, as are the next two */
  const struct row_source *rows; /* the fitted ones */
  const real *mean;              /* [p]; NULL: none */
  int scale;                     /* rows are multiplied by 2^scale */
  gidx last_epoch, last_row;     /* the last position that is taken: nothing is read behind it */
  struct shuffle shuffle, ahead; /* their pools are `pool` and `next` */
  gidx ahead_epoch, ahead_row;   /* a position in the latter */
  struct worker worker;
  struct device *device;    /* borrowed */
  struct buffer pool, next; /* [SHUFFLE_ROWS][p]; next.host has own windows at their place */
  idx *counts;              /* [size] rows of the pool ahead that each rank reads */
  gidx first;               /* where own rows begin in it */
  idx window;               /* the first own window of it */
  gidx key;                 /* first row of the window that could not be read */
  int is_ahead, is_busy;    /* the share of `ahead` was begun; the thread is at it */
  int status;               /* of reading it, once it is not */
  char why[1024];
};

/* Arrays are the arena's; a dry one counts them. */
int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed);
/* Pools on the device of the steps; a dry one counts them. */
int batches_buffers(struct batches *b, struct device *dev);
/* Start the thread that reads; batches_close() is safe on a zeroed struct. */
int batches_open(struct batches *b);
void batches_close(struct batches *b);

/* Wait until nothing is being read. */
void batches_rest(struct batches *b);

/* x[count][p] on the device <- the rows at positions first .. first + count - 1 of an epoch,
 * centred and scaled, on every rank.  ERR_INPUT names the lowest row that is not finite.
 * Collective. */
int batches_take(struct batches *b, gidx epoch, gidx first, idx count, struct buffer *x);

/* Read all rows once and check them; *hash <- theirs (model/identity.h).  ERR_INPUT, also where all
 * rows are the same: there is nothing to learn.  Collective. */
int batches_hash(struct batches *b, uint64_t *hash);
/* *scale <- that of the rows (N.43).  Collective. */
int batches_scale(struct batches *b, int *scale);

#endif
