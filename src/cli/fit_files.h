/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a fit: where they are, what a resumed run finds, and when they are written.
 *
 * Floor: cli.
 *
 * dictionary.h5 is written after a sweep that is the best so far, state.h5 after one that is not;
 * with a minibatch state.h5 after each, before dictionary.h5.  Both have the lines of all sweeps
 * until then, and a fit goes on from the longer one; but the best atoms are in dictionary.h5 alone,
 * and the sums of a minibatch in state.h5 alone.  A state.h5 that the next dictionary.h5 makes
 * useless is removed, and so is a supports.h5 of other atoms, and sweep.h5 (sweep_files.h) with any
 * of them. */
#ifndef CLI_FIT_FILES_H
#define CLI_FIT_FILES_H

#include "cli/command.h"
#include "results/sweep_files.h"
#include "fit/fit.h"
#include "io/dictionary.h"
#include "io/fit_extra.h"
#include "io/fit_history.h"
#include "job/checkpoint.h"

enum { FIT_STATE, FIT_SUPPORTS }; /* in job.more */

struct fit_files {
  struct job job;           /* of dictionary.h5, more[0], state.h5, and more[1], supports.h5 */
  struct sweep_files sweep; /* what there is of the sweep in work */
  idx k, p;
  int nonnegative, has_parts; /* has_parts: state.h5 has the sums of what was fitted */
  idx rounds, top_s;          /* that rows are encoded with */
  const real *mean;           /* [p] that of all sweeps; NULL: rows are not centred; borrowed, as */
  struct fit_extra *extra;    /* are the next */
  struct phase *write;        /* what the writer's thread does is counted here */
  struct fit_point start;     /* resumed: on every rank */
  struct fit_point reached;   /* rank 0: what files say, with lines of its own; no atoms */
  gidx reached_best;          /* the best sweep of them */
  struct fit_line *lines;     /* [lines_max] those of it */
  gidx lines_max;
  float *best;                /* [k][p] the best atoms so far */
  struct fit_sweep sweep_now; /* that is being published, on rank 0 */
  float *other;               /* [k][p] its atoms where they are not the best */
  gidx written;               /* rank 0: dictionary.h5 has the lines until this sweep */
  struct matrix_output file;  /* being written, on rank 0 */
  struct arena arena;
};

/* Claim the places of the job, which the caller has set, first of all.  With resume *minibatch <-
 * that of the run that is there, which its identity has; -1: there is none.  Collective. */
int fit_files_claim(struct fit_files *files, gidx *minibatch);
/* Then open the job; files has k, p, nonnegative and has_parts.  With resume read what is there:
 * ERR_INPUT when it is of another job than run->identity, or the two files are not of one fit.
 * Collective. */
int fit_files_open(struct fit_files *files, const struct run_inputs *inputs);
void fit_files_free(struct fit_files *files);

/* job->sink <- what fit_run() calls: a sweep is shown, and published while the next one computes;
 * by parts at once.  Not collective. */
struct fit_job;
void fit_files_sink(struct fit_job *job);
/* Behind fit_run(), with its status: wait until all that is to be published of the sweeps is there,
 * or will not be.  job->best and job->mean are those of the best sweep.  Collective. */
int fit_files_settle(struct fit_job *job, int status);

/* The fit has ended: dictionary.h5 gets what it has not: the lines of all sweeps, and what
 * files->extra has.  That of a complete fit stays, with all that is in it.  Collective. */
int fit_files_end(struct fit_files *files);

#endif
