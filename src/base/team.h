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

/* On at most `threads` threads of OpenMP.  They wait for the next loop without sleeping, and use
 * cores meanwhile: for computations of the main thread. */
void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self);

/* On this thread and the spare ones, for work beside the main thread: reading, writing and copies.
 * All such loops of a process share helper threads, at most as many as two loops take.  Helpers
 * sleep when idle, so waiting uses no core. */
void spare_run(gidx count, void (*task)(void *self, gidx i), void *self);

/* The same on spare threads only: the caller begins a loop, does something else, and ends the loop.
 * spare_end() runs the tasks that no thread has taken, and waits for the others.  In between the
 * struct must not move; team.c uses its members. */
struct spare_loop {
  void (*task)(void *self, gidx i);
  void *self;
  gidx count;
  _Atomic gidx next;
  int most;            /* helpers at most */
  int wanted, inside;  /* helpers that may still join; helpers at work */
  pthread_cond_t left; /* signalled when no helper is inside */
  struct spare_loop *after;
};
void spare_begin(struct spare_loop *l, gidx count, void (*task)(void *self, gidx i), void *self);
void spare_end(struct spare_loop *l);

/* How many threads such a loop may use, its own included.  It is 1, unless a device computes for
 * the main thread, or nothing is computed. */
int team_spare(void);
void team_spare_set(int threads);

/* How many of so many threads a team of the main thread should use while spare_run() works beside
 * it.  A team waits for its last thread, so it leaves cores to the helpers; if there are few
 * threads, one. */
int team_beside(int threads);

#endif
