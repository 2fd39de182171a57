/* SPDX-License-Identifier: BSD-3-Clause
 * A background thread that runs one job at a time, such as reading or writing during computation.
 *
 * Floor: base.
 *
 * While a job uses HDF5, no other thread may use it: the library is not thread-safe.  Entries of
 * arrays are read and written in parallel by the functions of io/h5/chunks.h, whose threads take
 * turns in using HDF5.  Waiting has no time limit: calls that may hang are steps of the
 * watchdog. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

struct worker {
  struct worker_state *state; /* owned */
};

int worker_open(struct worker *w);

/* Run job(argument) in the thread; the worker must be idle. */
int worker_start(struct worker *w, int (*job)(void *argument), void *argument);

/* Is a job running? */
int worker_is_busy(struct worker *w);

/* Wait for the job; returns its status, with its message. */
int worker_wait(struct worker *w);

/* Start the job and wait for it. */
int worker_run(struct worker *w, int (*job)(void *argument), void *argument);

/* Wait for a running job, then end the thread; safe on a zeroed struct. */
void worker_close(struct worker *w);

#endif
