/* SPDX-License-Identifier: BSD-3-Clause
 * sweep.h5, beside the results of refit and fit, is an unfinished sweep.  It is saved every
 * --save-seconds, and when the job is asked to stop; --resume continues inside the sweep.
 *
 * Floor: results.
 *
 * The other files in the folder are the results of the last whole sweep.  Residuals and codes are
 * made again from them (refit/replay.h).  A sweep.h5 is of use only if its sweep is the next one.
 * It is removed when a sweep is published, or when the job ends. */
#ifndef RESULTS_SWEEP_FILES_H
#define RESULTS_SWEEP_FILES_H

#include "io/sweep.h"
#include "job/job.h"
#include "refit/refit.h"

struct sweep_files {
  struct job *job; /* borrowed; set by the caller, as k, d and p are */
  idx k, d, p;
  struct phase *write;      /* borrowed: time of saving is counted here; NULL: nowhere */
  struct output_path place; /* rank 0 */
  int there;                /* 1: a file of an earlier run is not used yet; on every rank */
  struct sweep_facts found;
  struct sweep_facts now;    /* the sweep in work */
  gidx saved_atoms;          /* atoms of the sweep in work that the file has, from any run */
  int times_saved;           /* by this run; on every rank */
  struct matrix_output file; /* being written, rank 0 */
};

/* Claim the path; with --resume read the file's facts.  ERR_CREATE: there is a file of a stopped
 * job, and neither resume nor force is given; ERR_INPUT: it is another kind.  Rank 0 alone. */
int sweep_files_claim(struct sweep_files *f);
/* The last part of a message that refuses to resume from an older result.  If a run that --force
 * began over that result saved its first sweep, the part says how to resume that run; else "". */
const char *sweep_files_advice(const struct sweep_files *f);
/* After the claim: tell every rank what was found.  Collective. */
int sweep_files_broadcast(struct sweep_files *f);

/* A sweep begins: *start <- the part of it that an earlier run saved, if any; `before` as in struct
 * sweep_start.  ERR_INPUT: that run was another job.  Every rank calls it; not collective. */
int sweep_files_begin(struct sweep_files *f, const struct sweep_facts *now, const float *before,
                      struct sweep_start *start);

/* Between two atoms, or after the last one: save the sweep if a save is due, if its end will take
 * long, or if the job is asked to stop and its end does not take less than a second.  A save first
 * waits for the writer thread.  *stop <- 1 if the job ends here.  Collective. */
int sweep_files_poll(struct sweep_files *f, const struct sweep_point *at, int *stop);

/* Remove the file of a sweep that is now published.  Not collective. */
void sweep_files_end(struct sweep_files *f);
/* The job has ended after `sweeps` sweeps.  Remove the file of one of these sweeps, left by a run
 * that was killed before it could remove it.  A file of another job stays.  Not collective. */
void sweep_files_over(struct sweep_files *f, gidx sweeps);

#endif
