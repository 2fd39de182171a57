/* SPDX-License-Identifier: BSD-3-Clause
 * Work on a rank's rows, a batch of a second or less at a time: between two batches ranks ask each
 * other whether the job is to stop.
 *
 * Floor: refit. */
#ifndef REFIT_ROW_BATCHES_H
#define REFIT_ROW_BATCHES_H

#include "base/stop.h"
#include "comm/comm.h"

/* A loop:
 *     while (row_batches_next(&batches, c, &status)) status = work(batches.first, batches.count);
 * The first four are set by the caller, pointers are borrowed. */
struct row_batches {
  idx n, each; /* own rows, and those of a batch at most; ranks may have other numbers */
  gidx key;    /* of a failure here: of several the smallest wins (comm_agree_at()) */
  const struct stops *stops; /* NULL: nothing asks */
  idx first, count;          /* the rows that are next */
  int is_begun;
  int is_stopped; /* the job was asked to stop while some are left: what there is is of no use */
};

/* Is there a batch to do here?  Ranks meet behind each batch, and one without work returns when all
 * are done, or are to stop.  *status: of this rank alone, which does nothing more where it has
 * failed; in the end that of all.  Collective. */
int row_batches_next(struct row_batches *batches, struct comm *c, int *status);

#endif
