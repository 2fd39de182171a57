/* SPDX-License-Identifier: BSD-3-Clause
 * Work on a rank's rows, a lot of a second or less at a time: between two lots ranks ask each other
 * whether the job is to stop.
 *
 * Floor: refit. */
#ifndef REFIT_LOTS_H
#define REFIT_LOTS_H

#include "base/stop.h"
#include "comm/comm.h"

/* A loop:
 *     while (lots_next(&lots, c, &status)) status = work(lots.first, lots.count);
 * The first four are set by the caller, pointers are borrowed. */
struct lots {
  idx n, each; /* own rows, and those of a lot at most; ranks may have other numbers */
  gidx key;    /* of a failure here: of several the smallest wins (comm_agree_at()) */
  const struct stops *stops; /* NULL: nothing asks */
  idx first, count;          /* the rows that are next */
  int is_begun;
  int is_stopped; /* the job was asked to stop while some are left: what there is is of no use */
};

/* Is there a lot to do here?  Ranks meet behind each lot, and one without work returns when all are
 * done, or are to stop.  *status: of this rank alone, which does nothing more where it has failed;
 * in the end that of all.  Collective. */
int lots_next(struct lots *lots, struct comm *c, int *status);

#endif
