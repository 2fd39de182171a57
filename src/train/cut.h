/* SPDX-License-Identifier: BSD-3-Clause
 * The cut of a batch (N.46), the least score that is a code, when ranks divide the rows.  Ranks add
 * up how many scores have each value of a digit, digit by digit.  Of the scores that equal the cut,
 * lower ranks, which have lower rows, take theirs first.
 *
 * Floor: train. */
#ifndef TRAIN_CUT_H
#define TRAIN_CUT_H

#include "comm/comm.h"
#include "model/batch_cut.h"

struct cut_task {
  struct comm *c;
  void *self;
  /* counts[BATCH_BINS] <- the counts for own scores.  Not collective. */
  int (*count)(void *self, const struct batch_cut *cut, gidx *counts);
  gidx *all; /* [size] work space */
};

/* *cut, set by batch_cut_begin(), becomes the cut of all ranks' scores.  *ties <- how many of own
 * scores that equal it are codes.  Collective; the same status on every rank. */
int cut_agree(const struct cut_task *task, struct batch_cut *cut, gidx *ties);

#endif
