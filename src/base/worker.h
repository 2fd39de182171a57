/* SPDX-License-Identifier: BSD-3-Clause
 * A background thread that runs one job at a time, such as reading and writing during
 * computation.
 *
 * Floor: base.
 *
 * While a worker is open all HDF5 calls are made by its jobs: the library is not thread-safe. */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <stddef.h>

struct worker {
  struct worker_state *state; /* owned */
};

int worker_open(struct worker *w);

/* Run job(argument) in the thread; the worker must be idle. */
int worker_start(struct worker *w, int (*job)(void *argument), void *argument);

/* Wait for the job for at most so many seconds; returns 1 once it is done, and worker_wait() then
 * has its status. */
int worker_done(struct worker *w, double seconds);

/* Wait for the job and return its status, text included.  ERR_IO when it takes longer than
 * deadline seconds (0: no limit); the thread is then left behind and the program should end. */
int worker_wait(struct worker *w, double deadline);

/* Run the job on a copy of argument's bytes and wait for it, as the two above do.  The copy stays
 * with a thread that is left behind; what it points to must stay, too. */
int worker_run(struct worker *w, double deadline, int (*job)(void *copy), const void *argument,
               size_t bytes);

/* Wait for a job in progress, then end the thread; safe on a zeroed struct. */
void worker_close(struct worker *w);

#endif
