/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a fit: where they are, what a resumed run finds, and when they are written.
 *
 * Floor: cli.
 *
 * A sweep that is the best so far is written to dictionary.h5, any other sweep to state.h5.  With a
 * minibatch every sweep is written to state.h5 first.  Each file has the lines of all sweeps so
 * far, and a resumed fit continues from the file with more lines.  Only dictionary.h5 has the best
 * atoms, and only state.h5 has the sums of a minibatch.  state.h5 is removed when a newer
 * dictionary.h5 makes it useless; supports.h5 when its atoms change; sweep.h5 (sweep_files.h) when
 * either file is written. */
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
  struct job job;           /* of dictionary.h5; more[0] is state.h5, more[1] is supports.h5 */
  struct sweep_files sweep; /* what is saved of the sweep in progress */
  idx k, p;
  int nonnegative, has_parts, is_conjugate; /* has_parts: state.h5 has sums of fitted rows */
  idx rounds, top_s;                        /* of the encoding of rows */
  const real *mean;         /* [p] of all sweeps; NULL: rows are not centred; borrowed */
  struct fit_extra *extra;  /* borrowed */
  struct phase *write;      /* time of the writer thread is counted here */
  struct fit_point start;   /* where a resumed run starts; on every rank */
  struct fit_point reached; /* rank 0: what the files say, with a copy of the lines; no atoms */
  gidx reached_best;        /* the best sweep among them */
  struct fit_line *lines;   /* [lines_max] the lines of `reached` */
  gidx lines_max;
  float *best;                /* [k][p] the best atoms so far */
  struct fit_sweep sweep_now; /* being published, on rank 0 */
  float *other;               /* [k][p] atoms of sweep_now if they are not the best */
  gidx written;               /* rank 0: dictionary.h5 has the lines up to this sweep */
  struct matrix_output file;  /* being written, on rank 0 */
  struct arena arena;
};

/* Claim the output paths, before anything else; the caller has set files->job.  With resume
 * *minibatch <- that of the earlier run, from its identity; -1: there is none.  Collective. */
int fit_files_claim(struct fit_files *files, gidx *minibatch);
/* Then open the job; files has k, p and the next three.  With resume read the files.
 * ERR_INPUT when they are of another job than files->job.run->identity, or not of one fit.
 * Collective. */
int fit_files_open(struct fit_files *files, const struct run_inputs *inputs);
void fit_files_free(struct fit_files *files);

/* job->sink <- the callbacks of fit_run().  They log a sweep, and publish it while the next one
 * computes; a fit by parts publishes at once.  Not collective. */
struct fit_job;
void fit_files_sink(struct fit_job *job);
/* After fit_run(), with its status: wait until all sweeps are published, or have failed to be.
 * job->best and job->mean are those of the best sweep.  Collective. */
int fit_files_settle(struct fit_job *job, int status);

/* The fit has ended: add to dictionary.h5 the lines of all sweeps, and files->extra.  If the fit
 * was complete before, dictionary.h5 stays as it is.  Collective. */
int fit_files_end(struct fit_files *files);

#endif
