/* SPDX-License-Identifier: BSD-3-Clause
 * sweep.h5 beside the results of refit and fit: a sweep that takes long is saved every few minutes,
 * and where the job is asked to stop; --resume goes on inside it.
 *
 * Floor: results.
 *
 * What is in the folder otherwise is that of the sweep before, from which residuals and codes are
 * made again (refit/replay.h).  A file of another sweep than the next one is of no use, and
 * is removed when the next one is published, or when the job ends behind it. */
#ifndef RESULTS_SWEEP_FILES_H
#define RESULTS_SWEEP_FILES_H

#include "io/sweep.h"
#include "job/job.h"
#include "refit/refit.h"

struct sweep_files {
  struct job *job; /* borrowed; set by the caller, as the next two are */
  idx k, d, p;
  struct phase *write;      /* borrowed: saving is counted here; NULL: nowhere */
  struct output_path place; /* rank 0 */
  int there;                /* on every rank, as is the next: an earlier run left one */
  struct sweep_facts found;
  gidx saved_atoms;          /* atoms of it that the file has, of this run or the earlier one */
  int times_saved;           /* on every rank: by this run */
  struct matrix_output file; /* being written, rank 0 */
};

/* Claim the place; with --resume look for the file.  ERR_CREATE: it is there, of a job that
 * stopped, without resume and force; ERR_INPUT: it is another file.  Rank 0 alone. */
int sweep_files_claim(struct sweep_files *f);
/* What to add to a message that refuses to go on from an older result: how to go on with the run
 * that --force began over it, if that has left its first sweep; "" if not. */
const char *sweep_files_advice(const struct sweep_files *f);
/* Then every rank learns what is there.  Collective. */
int sweep_files_broadcast(struct sweep_files *f);

/* A sweep begins: *start <- what an earlier run has done of it, if it has; before as struct
 * sweep_start has it.  ERR_INPUT: that run was another.  The same on every rank; not collective. */
int sweep_files_begin(struct sweep_files *f, const struct sweep_facts *now, const float *before,
                      struct sweep_start *start);

/* Between two atoms, or behind the last: is the sweep to be saved, or asked to stop?  Then it is
 * saved, also before what takes long, once nobody else writes; *stop <- the job ends here.
 * Collective. */
int sweep_files_poll(struct sweep_files *f, const struct sweep_facts *now,
                     const struct sweep_point *at, int *stop);

/* The sweep is published: what there is of it is removed.  Not collective. */
void sweep_files_end(struct sweep_files *f);
/* The job ends behind so many sweeps: a file of one of them, which a run that was killed between
 * the two left, is removed, too; not one of another run.  Not collective. */
void sweep_files_over(struct sweep_files *f, gidx sweeps);

#endif
