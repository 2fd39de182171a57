/* SPDX-License-Identifier: BSD-3-Clause
 * Work on a rank's rows, a lot of a second or less at a time: between two lots ranks ask each other
 * whether the job is to stop.
 *
 * Floor: refit. */
#ifndef REFIT_LOTS_H
#define REFIT_LOTS_H

#include "base/stop.h"
#include "comm/comm.h"

struct lots {
  idx n, each; /* own rows, and those of a lot at most; ranks may have other numbers */
  int (*run)(void *self, idx first, idx count); /* not collective */
  void *self;                                   /* borrowed, as is the next */
  const struct stops *stops;                    /* NULL: nothing asks */
};

/* Do all lots of all ranks, unless the job is asked to stop while some are left: then *stopped, and
 * what there is of them is of no use.  status: of this rank alone, which does nothing where it has
 * failed.  Of several failures that with the smallest key is returned (comm_agree_at()).
 * Collective. */
int lots_run(const struct lots *lots, struct comm *c, int status, gidx key, int *stopped);

#endif
