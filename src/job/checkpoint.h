/* SPDX-License-Identifier: BSD-3-Clause
 * Requests to a running job, to stop or to save and continue; and publishing its state (kinds B
 * and C of job.h).
 *
 * Floor: job.  Collective, with one status on all ranks, unless a comment says otherwise.
 *
 * With job->writes_beside, rank 0 hashes, writes, reads back and syncs files in a thread of its
 * own, from a copy.  That thread is waited for before the next checkpoint, and before the job does
 * anything else with files.  So files appear in order, only one thread uses HDF5 at a time, and a
 * failure ends the job at the next checkpoint at the latest. */
#ifndef JOB_CHECKPOINT_H
#define JOB_CHECKPOINT_H

#include "base/phase.h"
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

/* Wait for the last checkpoint, check that no input has changed, and publish the present state.
 * Kind C calls type->save(), in the background from a copy by type->snapshot(), or directly; kind B
 * calls type->write().  run.json follows. */
int job_checkpoint(struct job *job);

/* B: a checkpoint; or at the end the result, after which the state is removed. */
int job_publish(struct job *job, int is_end);

/* Wait for what is being published; returns its status. */
int job_wait(struct job *job);

/* Make the job's entries of run.json, which is written after a checkpoint, and by main at the end
 * of the run.  Rank 0 alone. */
int job_summary(const struct job *job);

/* Is something being published?  Not collective. */
int job_is_saving(struct job *job);

/* C: the algorithm has ended, with this status.  Wait, even after a failure, and end the thread, so
 * that no file is being written when the job ends.  wait: counts the time. */
int job_settle(struct job *job, int status, struct phase *wait);

#endif
