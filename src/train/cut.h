/* SPDX-License-Identifier: BSD-3-Clause
 * The cut of a batch whose rows ranks share out (N.46): they add up how many scores have each
 * digit, and scores that equal it go to ranks in their order, which is that of rows.
 *
 * Floor: train. */
#ifndef TRAIN_CUT_H
#define TRAIN_CUT_H

#include "comm/comm.h"
#include "model/batch_cut.h"

struct cut_task {
  struct comm *c;
  void *self;
  /* counts[BATCH_BINS] <- of own scores.  Not collective. */
  int (*count)(void *self, const struct batch_cut *cut, gidx *counts);
  gidx *all; /* [size] work */
};

/* *cut, of batch_cut_begin(), becomes that of all ranks' scores; *ties <- how many of own scores
 * that equal it are codes.  Collective; the same status on every rank. */
int cut_agree(const struct cut_task *task, struct batch_cut *cut, gidx *ties);

#endif
