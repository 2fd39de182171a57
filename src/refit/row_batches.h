/* SPDX-License-Identifier: BSD-3-Clause
 * Work on a rank's rows in batches of a second or less.  Between two batches ranks ask each other
 * whether the job must stop.
 *
 * Floor: refit. */
#ifndef REFIT_ROW_BATCHES_H
#define REFIT_ROW_BATCHES_H

#include "base/stop.h"
#include "comm/comm.h"

/* A loop:
 *     while (row_batches_next(&batches, c, &status)) status = work(batches.first, batches.count);
 * The caller sets n, each, key and stops; pointers are borrowed. */
struct row_batches {
  idx n, each; /* own rows, and the largest number of rows of a batch; may differ between ranks */
  gidx key;    /* of a failure on this rank: the smallest key wins (comm_agree_at()) */
  const struct stops *stops; /* NULL: never stopped */
  idx first, count;          /* the rows of the present batch */
  int is_begun;
  int is_stopped; /* the job was asked to stop before all was done: the results so far are of no
                   * use */
};

/* Is there a batch to do on this rank?  Ranks meet after each batch; a rank without work returns
 * when all are done, or must stop.  *status: the status of this rank's last batch; after a failure
 * the rank does no more batches.  When 0 is returned, *status is common to all ranks; but with
 * comm_alone() a failure that is not agreed is returned at once, and must end the job.
 * Collective. */
int row_batches_next(struct row_batches *batches, struct comm *c, int *status);

#endif
