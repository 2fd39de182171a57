/* SPDX-License-Identifier: BSD-3-Clause
 * The sweeps of a refit: when they are saved, left and published, and where a run that was stopped
 * goes on.
 *
 * Floor: cli.  Collective, unless a comment says otherwise. */
#ifndef CLI_REFIT_SWEEPS_H
#define CLI_REFIT_SWEEPS_H

#include "cli/refit_job.h"

/* Take the place of a run that was stopped.  Where its supports are not of its last sweep, they are
 * made again: their atoms are those of the start, or are routed. */
int refit_job_resume(struct refit_job *j);

/* While rows are routed and coded: may the job, which is `of`, end?  Not collective. */
int refit_may_stop(void *of);

/* Sweep after sweep, until there are as many as are wanted or the job is asked to stop; then all
 * that they gave is there. */
int refit_sweeps_run(struct refit_job *j);

#endif
