/* SPDX-License-Identifier: BSD-3-Clause
 * sweep.h5, beside the results of refit and fit, is an unfinished sweep.  It is saved every few
 * minutes, and when the job is asked to stop; --resume continues inside the sweep.
 *
 * Floor: results.
 *
 * The other files in the folder are those of the sweep before; residuals and codes are made again
 * from them (refit/replay.h).  A sweep.h5 that is not of the next sweep is useless.  It is removed
 * when the next sweep is published, or when the job ends. */
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
  int there;                /* an earlier run left a file; on every rank, as found is */
  struct sweep_facts found;
  struct sweep_facts now;    /* the sweep in work */
  gidx saved_atoms;          /* atoms of the sweep that the file has, of either run */
  int times_saved;           /* by this run; on every rank */
  struct matrix_output file; /* being written, rank 0 */
};

/* Claim the path; with --resume look for the file.  ERR_CREATE: a file of a stopped job is there,
 * and neither resume nor force is given; ERR_INPUT: it is another kind of file.  Rank 0 alone. */
int sweep_files_claim(struct sweep_files *f);
/* What to add to a message that refuses to resume from an older result: how to resume the run that
 * --force began over it, if that run saved its first sweep; "" otherwise. */
const char *sweep_files_advice(const struct sweep_files *f);
/* Then tell every rank what was found.  Collective. */
int sweep_files_broadcast(struct sweep_files *f);

/* A sweep begins: *start <- what an earlier run has done of it, if anything; `before` as in struct
 * sweep_start.  ERR_INPUT: that run was another.  The same on every rank; not collective. */
int sweep_files_begin(struct sweep_files *f, const struct sweep_facts *now, const float *before,
                      struct sweep_start *start);

/* Between two atoms, or after the last: save the sweep if that is due, if a long step follows, or
 * if the job is asked to stop.  Waits until the writer has ended.  *stop <- 1: the job ends here.
 * Collective. */
int sweep_files_poll(struct sweep_files *f, const struct sweep_point *at, int *stop);

/* Remove the file of a sweep that is now published.  Not collective. */
void sweep_files_end(struct sweep_files *f);
/* The job ends after so many sweeps: remove the file of one of them, which a run left that was
 * killed before it could.  A file of another run stays.  Not collective. */
void sweep_files_over(struct sweep_files *f, gidx sweeps);

#endif
