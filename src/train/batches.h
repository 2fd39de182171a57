/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of training, batch after batch, in the order of (N.43).  Rows are read in windows, runs
 * of consecutive rows.  A pool has up to SHUFFLE_POOL windows, which lie anywhere in the file.  The
 * rows of a pool are shuffled, and batches are taken from it.
 *
 * Floor: train.  Every rank reads its share of a pool; its device has the whole pool.
 *
 * A thread reads the share of the next pool while steps are done with the current one.  Call
 * batches_rest() before other code uses files. */
#ifndef TRAIN_BATCHES_H
#define TRAIN_BATCHES_H

#include "base/worker.h"
#include "comm/comm.h"
#include "device/buffer.h"
#include "model/rows.h"
#include "model/shuffle.h"

struct batches {
  struct comm *c;                /* borrowed, as are rows and mean */
  const struct row_source *rows; /* the fitted ones */
  const real *mean;              /* [p]; NULL: none */
  int scale;                     /* rows are multiplied by 2^scale */
  gidx last_epoch, last_row;     /* of the last batch; no pool after it is read */
  struct shuffle shuffle, ahead; /* the orders of `pool` and of `next` */
  gidx ahead_epoch, ahead_row;   /* a position in `next` */
  struct worker worker;
  struct device *device;    /* borrowed */
  struct buffer pool, next; /* [SHUFFLE_ROWS][p]; next.host has this rank's windows at their
                             * positions */
  idx *counts;              /* [size] rows of the next pool that each rank reads */
  gidx first;               /* position of this rank's first row in the next pool */
  idx window;               /* this rank's first window in the next pool */
  gidx key;                 /* first row of the window that could not be read */
  int is_ahead, is_busy;    /* reading of `next` has begun; the thread is reading */
  int status;               /* of the reading, once is_busy is 0 */
  char why[1024];
};

/* Arrays live in the arena; a dry arena only counts them. */
int batches_alloc(struct batches *b, struct arena *arena, uint64_t seed);
/* Allocate the pools on the device of the steps; a dry device only counts them. */
int batches_buffers(struct batches *b, struct device *dev);
/* Start the thread that reads.  batches_close() is safe on a zeroed struct. */
int batches_open(struct batches *b);
void batches_close(struct batches *b);

/* Wait until nothing is being read. */
void batches_rest(struct batches *b);

/* x[count][p] on the device of every rank <- the rows at positions first .. first + count - 1 of an
 * epoch, centred and scaled.  ERR_INPUT names a row that is not finite.  Collective. */
int batches_take(struct batches *b, gidx epoch, gidx first, idx count, struct buffer *x);

/* Read and check all rows; *hash <- their hash (model/identity.h).  ERR_INPUT also if all rows are
 * equal: there is nothing to learn.  Collective. */
int batches_hash(struct batches *b, uint64_t *hash);
/* *scale <- the scale of the rows (N.43).  Collective. */
int batches_scale(struct batches *b, int *scale);

#endif
