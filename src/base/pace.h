/* SPDX-License-Identifier: BSD-3-Clause
 * How fast this process reads and writes files, and how soon it ends once it is asked to stop.
 *
 * Floor: base.  Measured where calls are made (retry.h) and where a job asks (stop.h). */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include "base/types.h"

enum pace_way { PACE_READ, PACE_WRITE, PACE_WAYS };

/* The time, for the next function. */
double pace_now(void);
/* So many bytes were read or written since `begun`; a sync is a write of no bytes.  Any thread. */
void pace_moved(enum pace_way way, gidx bytes, double begun);
/* The job asks whether to stop: the longest time between two calls is that of a step. */
void pace_step(void);

/* A stop writes so many more bytes, and verifies these and what this process has written by then,
 * of that `most` at most.  Until it is called: all that was written. */
void pace_ending_set(gidx more, gidx most);
/* Log within how many seconds the job ends, now that it stops: two steps, these bytes at the rates
 * so far, and two seconds. */
void pace_ending_log(void);

#endif
