/* SPDX-License-Identifier: BSD-3-Clause
 * Parallel loops over threads, for host code that is no operation of a device.
 *
 * Floor: base.
 *
 * A loop calls task(self, i) for i = 0 .. count - 1, each once, in any order.  A task cannot fail;
 * what it writes must not depend on the order. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include <pthread.h>

#include "base/types.h"

/* On at most so many threads of OpenMP, which wait for the next loop without sleeping, and take
 * cores while they do: for what the main thread computes. */
void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self);

/* On this thread and those that are spare, for work behind the main thread: reading, writing and
 * copies.  All such loops of a process share its helpers, as many as two loops take, which sleep
 * between them: who waits takes no core. */
void spare_run(gidx count, void (*task)(void *self, gidx i), void *self);

/* The same on spare threads alone: whoever begins a loop goes on with something else, and ends it,
 * which runs what no thread has taken by then and waits for the others.  In between it stays where
 * it is; what it has is team.c's. */
struct spare_loop {
  void (*task)(void *self, gidx i);
  void *self;
  gidx count;
  _Atomic gidx next;
  int most;            /* helpers */
  int wanted, inside;  /* of them may still come, and are at work */
  pthread_cond_t left; /* none is inside */
  struct spare_loop *after;
};
void spare_begin(struct spare_loop *l, gidx count, void (*task)(void *self, gidx i), void *self);
void spare_end(struct spare_loop *l);

/* How many threads such a loop may take, its own included: 1, unless a device computes for the main
 * thread, or nothing is computed. */
int team_spare(void);
void team_spare_set(int threads);

/* How many of so many threads a team of the main thread takes where spare_run() works beside it: a
 * team waits for its last thread, so that it leaves cores to the helpers; of few threads, one. */
int team_beside(int threads);

#endif
