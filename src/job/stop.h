/* SPDX-License-Identifier: BSD-3-Clause
 * What asks a job to stop, or to save what there is and go on.
 *
 * Floor: job. */
#ifndef JOB_STOP_H
#define JOB_STOP_H

#include "base/stop.h"
#include "job/job.h"

/* What asks the job to stop, for an algorithm.  job_wishes() leaves out --max-seconds, for where no
 * run would get further with it.  job is borrowed.  Not collective. */
struct stops job_stops(struct job *job);
struct stops job_wishes(struct job *job);

/* Something was saved, or is about to be: the next checkpoint is due --save-seconds from now.  Not
 * collective. */
void job_save_later(struct job *job);

/* Is the job asked to stop, by a signal to any rank (base/stop.h), run->max_seconds (0 in `fit`)
 * or a file STOP beside the result?  Then the log says so, run->stopped is set, and main ends with
 * ERR_STOPPED.  For where what was reached is published: may_stop() is not asked.  Collective. */
int job_poll(struct job *job, int *stop);
/* The same in two steps, neither of which is collective: what asks this rank, as bits; and with the
 * bits of all ranks, which the caller joins, if there are any. */
uint64_t job_stop_asked(struct job *job);
void job_stopped(struct job *job, uint64_t asked);

#endif
