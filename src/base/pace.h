/* SPDX-License-Identifier: BSD-3-Clause
 * How fast this process reads and writes files, and how soon it ends once it is asked to stop.
 *
 * Floor: base.  System calls are measured in retry.c, steps in stop.c. */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include "base/types.h"

enum pace_way { PACE_READ, PACE_WRITE, PACE_WAYS };

/* The present time in seconds, for pace_moved(). */
double pace_now(void);
/* Count `bytes` bytes that were read or written since the time `begun`.  A sync is a write of no
 * bytes.  Any thread may call this. */
void pace_moved(enum pace_way way, gidx bytes, double begun);
/* Called when the job asks whether to stop.  The longest time between two calls counts as the time
 * of a step. */
void pace_step(void);

/* Tell pace_ending_log() which bytes a stop writes and verifies: `more` further bytes, and all
 * bytes that this process has written, but at most `most` of these.  Before the first call, more is
 * 0 and most has no limit. */
void pace_ending_set(gidx more, gidx most);
/* The job stops: log a bound on the seconds until it ends.  The bound is the sum of the time of two
 * steps, the time to write and to read the bytes of pace_ending_set() at the rates so far, and two
 * seconds. */
void pace_ending_log(void);

#endif
