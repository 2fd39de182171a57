/* SPDX-License-Identifier: BSD-3-Clause
 * Requests to a job: to stop, or to save and continue.
 *
 * Floor: job. */
#ifndef JOB_STOP_H
#define JOB_STOP_H

#include "base/stop.h"
#include "job/job.h"

/* The requests to stop the job, for an algorithm.  job_wishes() leaves out --max-seconds, for steps
 * in which no run would get further with it.  job is borrowed.  Not collective. */
struct stops job_stops(struct job *job);
struct stops job_wishes(struct job *job);

/* The next checkpoint is due --save-seconds from now.  Not collective. */
void job_save_later(struct job *job);

/* Is the job asked to stop, by a signal to any rank, by run->max_seconds (0 in `fit`), or by a file
 * STOP beside the result?  Then it is logged, run->stopped is set, and main ends with ERR_STOPPED.
 * For points where the state was just published: may_stop() is not asked.  Collective. */
int job_poll(struct job *job, int *stop);
/* The same in two steps, neither of which is collective.  First the reasons of this rank, as bits;
 * then, if there are any, with the bits of all ranks, which the caller has joined. */
uint64_t job_stop_asked(struct job *job);
void job_stopped(struct job *job, uint64_t asked);

#endif
