/* SPDX-License-Identifier: BSD-3-Clause
 * Publishing what a job has reached while it goes on (B and C of job.h).
 *
 * Floor: job.  Collective, with one status on all ranks, unless a comment says otherwise.
 *
 * Where job->writes_beside is 1, rank 0 hashes, writes, reads back and syncs files in a thread of
 * its own, from a copy.  That thread is waited for before the next checkpoint and before the job
 * does anything else with files: so files appear in their order, one thread at a time uses HDF5,
 * and what failed ends the job, a checkpoint later at most. */
#ifndef JOB_CHECKPOINT_H
#define JOB_CHECKPOINT_H

#include "base/phase.h"
#include "job/job.h"

/* Wait for what is being published; has no input changed?  Then publish what was reached: C by
 * type->save(), beside the work, from a copy that type->snapshot() takes, or at once; B its state
 * by type->write().  run.json follows. */
int job_checkpoint(struct job *job);

/* B: a checkpoint, or at the end the result, behind which the state is removed. */
int job_publish(struct job *job, int is_end);

/* Wait for what is being published; its status. */
int job_wait(struct job *job);

/* The entries of the job for run.json, which is written behind a checkpoint, and by main at the end
 * of the run.  Rank 0 alone. */
int job_summary(const struct job *job);

/* Is something being published?  Not collective. */
int job_is_saving(struct job *job);

/* C: the algorithm has ended, with this status: wait, whatever became of it, and end the thread, so
 * that no file is in work when the job ends.  wait: counts the time. */
int job_settle(struct job *job, int status, struct phase *wait);

#endif
