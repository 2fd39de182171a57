/* SPDX-License-Identifier: BSD-3-Clause
 * One background thread that runs one job at a time: reading and writing behind computing.
 *
 * Floor: base.
 *
 * While a worker is open all HDF5 calls are made by its jobs: the library is not thread-safe. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

struct worker {
  struct worker_state *state; /* owned */
};

int worker_open(struct worker *w);

/* Run job(argument) in the thread; the worker must be idle. */
int worker_start(struct worker *w, int (*job)(void *argument), void *argument);

/* Wait for the job for at most so many seconds; 1 once it is done: worker_wait() has its status. */
int worker_done(struct worker *w, double seconds);

/* Wait for the job and return its status, text included.  ERR_IO when it takes longer than
 * deadline seconds (0: no limit); the thread is then left behind and the program should end. */
int worker_wait(struct worker *w, double deadline);

/* Wait for a job in progress, end the thread; safe on a zeroed struct. */
void worker_close(struct worker *w);

#endif
