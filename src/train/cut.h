/* SPDX-License-Identifier: BSD-3-Clause
 * The cut of a batch (N.46), whose rows ranks divide: the smallest score of the batch that is a
 * code.  It is found digit by digit (model/batch_cut.h): ranks add up their counts of scores for
 * each value of a digit.  If only some of the scores that equal the cut are codes, the scores of
 * lower ranks come first, since lower ranks have lower rows.
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

/* *cut, set by batch_cut_begin(), becomes the cut of the scores of all ranks.  *ties <- the number
 * of own scores that equal the cut and are codes.  Collective; the same status on every rank. */
int cut_agree(const struct cut_task *task, struct batch_cut *cut, gidx *ties);

#endif
