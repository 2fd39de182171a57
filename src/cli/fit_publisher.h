/* SPDX-License-Identifier: BSD-3-Clause
 * Publishing what a sweep of fit gave while the next one computes.
 *
 * Floor: cli.
 *
 * Rank 0 copies the state and lets a worker hash, write, read back and sync the files of
 * fit_files.h, then run.json.  The worker is waited for before the next state is handed over and
 * before the job goes on to anything else, so that files appear in the order of their sweeps, one
 * thread at a time uses HDF5, and what failed ends the job, a sweep later at most.  A fit by parts
 * waits at once: its state has sums of K^2 numbers, of which no second copy is held, and it reads
 * rows in a sweep. */
#ifndef CLI_FIT_PUBLISHER_H
#define CLI_FIT_PUBLISHER_H

#include "base/phase.h"
#include "base/worker.h"
#include "cli/fit_files.h"
#include "cli/fit_page.h"

struct fit_publisher {
  struct run *run;         /* borrowed, as are the next; filled in by the caller */
  struct fit_files *files; /* opened */
  struct fit_page *page;   /* claimed, rank 0 */
  const real *mean;        /* [p]; NULL: rows are not centred */
  struct phase *write;     /* what the worker does is counted here */
  int threads;
  /* Of the sweep that is being published, on rank 0. */
  struct fit_sweep sweep;
  float *atoms;         /* [k][p] where it is not the best; owned */
  struct worker worker; /* owned */
};

/* Wait for the sweep that is being published; its status.  Collective. */
int fit_publisher_wait(struct fit_publisher *publisher);

/* Wait, then copy the sweep and begin to publish it; *publisher->mean is that of all sweeps.  The
 * inputs were looked at since they were read (inputs_confirm()).  Collective. */
int fit_publisher_begin(struct fit_publisher *publisher, const struct fit_sweep *sweep);

/* Wait, whatever became of it, and free; also where the fit has failed, so that no file is in work
 * when the job ends.  Safe on a zeroed struct.  Not collective. */
void fit_publisher_close(struct fit_publisher *publisher);

/* *bytes <- what rank 0 holds of k atoms of p columns. */
gidx fit_publisher_bytes(idx k, idx p);

#endif
