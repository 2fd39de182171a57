/* SPDX-License-Identifier: BSD-3-Clause
 * Requests to a running job: to stop, or to save and continue.  Also publishing the state of a job
 * of kind B or C (job.h).
 *
 * Floor: job.  Collective, with one status on all ranks, unless a comment says otherwise.
 *
 * With job->writes_beside, rank 0 hashes, writes, reads back and syncs files in a thread of its
 * own, from a copy of the state.  The job waits for this thread before the next checkpoint, and
 * before it does anything else with files.  So files appear in order, only one thread uses HDF5 at
 * a time, and a failure ends the job at the next checkpoint at the latest. */
#ifndef JOB_CHECKPOINT_H
#define JOB_CHECKPOINT_H

#include "base/phase.h"
#include "base/stop.h"
#include "job/job.h"

/* The requests to stop the job (base/stop.h).  job_wishes() leaves out --max-seconds, for work
 * that each resumed run repeats from its start.  job is borrowed.  Not collective. */
struct stops job_stops(struct job *job);
struct stops job_wishes(struct job *job);

/* The next checkpoint is due --save-seconds from now.  Not collective. */
void job_save_later(struct job *job);

/* *stop <- 1 if a signal to any rank, run->max_seconds (0 in `fit`), or a file STOP beside the
 * result asks the job to stop.  Then this is logged, run->stopped is set, and main ends with
 * ERR_STOPPED.  Call it after the state was published: may_stop() is not asked.  Collective. */
int job_poll(struct job *job, int *stop);
/* job_poll() in two steps, not collective.  First the reasons of this rank, as bits.  The caller
 * joins the bits of all ranks, and calls job_stopped() with them unless they are 0. */
uint64_t job_stop_asked(struct job *job);
void job_stopped(struct job *job, uint64_t asked);

/* Wait for the last checkpoint, check that no input has changed, and publish the present state.
 * Kind B calls type->write().  Kind C calls type->save(); with writes_beside the thread does this,
 * from a copy by type->snapshot().  If job->summary is set, run.json is written, too. */
int job_checkpoint(struct job *job);

/* B: publish the state.  With is_end publish the result instead, and remove the state. */
int job_publish(struct job *job, int is_end);

/* Wait for the thread that publishes; returns its status. */
int job_wait(struct job *job);

/* Note the job's entries for run.json.  The file is written after each checkpoint, and by main at
 * the end of the run.  Rank 0 alone. */
int job_summary(const struct job *job);

/* Rank 0: is the thread publishing?  Not collective. */
int job_is_saving(struct job *job);

/* C: call this after the algorithm, with its status.  Wait for the thread, even after a failure,
 * and end it, so that no file is being written when the job ends.  The phase *wait has the time. */
int job_settle(struct job *job, int status, struct phase *wait);

#endif
