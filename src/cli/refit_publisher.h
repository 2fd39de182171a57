/* SPDX-License-Identifier: BSD-3-Clause
 * Publishing what a sweep of a refit gave while others compute, where one rank has a GPU that takes
 * the steps.
 *
 * Floor: cli.
 *
 * The state is copied, and a worker hashes, writes, reads back and syncs the files of refit_files.h
 * and removes sweep.h5.  A sweep that ends meanwhile need not wait: its state may be left out,
 * since a later one says all that it would (refit_sweeps.c).  The worker is waited for before a
 * state is handed over and before the job goes on to anything else, so that files appear in the
 * order of their sweeps, one thread at a time uses HDF5, and what failed ends the job with the
 * sweep in which it failed. */
#ifndef CLI_REFIT_PUBLISHER_H
#define CLI_REFIT_PUBLISHER_H

#include "base/phase.h"
#include "base/worker.h"
#include "cli/refit_files.h"

struct refit_publisher {
  const struct run *run;           /* borrowed, as are the next; filled in by the caller */
  const struct refit_files *files; /* opened */
  struct phase *write;             /* what the worker does is counted here */
  int threads;                     /* of the job, for copies and for the facts of its files */
  struct worker worker;            /* owned */
  struct refit_sweep *sweep;       /* owned: the one that is being published; NULL: not open */
};

/* Allocate copies for a state of these sizes; where there is no room for them it stays closed, and
 * the log says so. */
int refit_publisher_open(struct refit_publisher *publisher, const struct refit_state *state);

/* Is a state being published? */
int refit_publisher_is_busy(struct refit_publisher *publisher);

/* Wait, then copy the result and begin to publish it.  The inputs were looked at since they were
 * read (inputs_confirm()). */
int refit_publisher_begin(struct refit_publisher *publisher, const struct refit_result *result);

/* Wait for what is being published; its status. */
int refit_publisher_wait(struct refit_publisher *publisher);

/* Wait, whatever became of it, and free; also where the refit has failed, so that no file is in
 * work when the job ends.  Safe on a zeroed struct. */
void refit_publisher_close(struct refit_publisher *publisher);

#endif
