/* SPDX-License-Identifier: BSD-3-Clause
 * Parallel loops over threads, for host code that is not an operation of a device.
 *
 * Floor: base.
 *
 * A loop calls task(self, i) for i = 0 .. count - 1, each once, in any order.  A task cannot fail;
 * what it writes must not depend on the order. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include <pthread.h>

#include "base/types.h"

/* On at most `threads` threads of OpenMP.  Between loops these threads may wait without sleeping,
 * and then use their cores (OMP_WAIT_POLICY).  For computations of the main thread. */
void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self);

/* On this thread and spare threads, for work in parallel to the main thread: reading, writing and
 * copies.  All such loops of a process share the same helper threads.  There are at most twice as
 * many helpers as the largest loop wants.  Helpers sleep when idle, so waiting uses no core. */
void spare_run(gidx count, void (*task)(void *self, gidx i), void *self);

/* The same on spare threads only: the caller begins a loop, does something else, and ends the loop.
 * spare_end() runs the tasks that no thread has taken, and waits for the others.  In between the
 * struct must not move; team.c uses its members. */
struct spare_loop {
  void (*task)(void *self, gidx i);
  void *self;
  gidx count;
  _Atomic gidx next;
  int most;            /* largest number of helpers */
  int wanted, inside;  /* helpers that may still join; helpers at work */
  pthread_cond_t left; /* signalled when no helper is inside */
  struct spare_loop *after;
};
void spare_begin(struct spare_loop *l, gidx count, void (*task)(void *self, gidx i), void *self);
void spare_end(struct spare_loop *l);

/* The number of threads that such a loop may use, the calling thread included.  It is 1 while CPU
 * cores compute; it is larger if a GPU computes, or if nothing is computed. */
int team_spare(void);
void team_spare_set(int threads);

/* The number of threads, of `threads`, that team_run() should use while spare_run() works in
 * parallel.  A team waits for its slowest thread, so it leaves cores to the helpers: of 5 threads
 * or more it leaves team_spare(), but uses at least one itself; of 3 or 4 it leaves one; of 1 or 2
 * none. */
int team_beside(int threads);

#endif
