/* SPDX-License-Identifier: BSD-3-Clause
 * A parallel loop over threads, for host code that is no operation of a device.
 *
 * Floor: base. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include "base/types.h"

/* Call task(self, i) for i = 0 .. count - 1, each once, in any order on at most so many threads.
 * A task cannot fail; what it writes must not depend on the order. */
void team_run(int threads, gidx count, void (*task)(void *self, gidx i), void *self);

/* How many threads work behind the main thread may use: 1, unless a device computes for it, or
 * nothing is computed. */
int team_spare(void);
void team_spare_set(int threads);

#endif
