/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a fit: where they are, what a resumed run finds, and when they are written.
 *
 * Floor: cli.
 *
 * A sweep that is the best so far is written to dictionary.h5, any other sweep to state.h5.  If
 * --minibatch divides the rows into parts, every sweep is written to state.h5 first.  Each file has
 * the lines of all sweeps so far.  A resumed fit continues from the file with more lines, or from
 * state.h5 if the numbers are equal.  dictionary.h5 always has the best atoms; only state.h5 has
 * the sums or weights of parts.  state.h5 is removed when a newer dictionary.h5 makes it useless,
 * supports.h5 when dictionary.h5 gets other atoms, sweep.h5 (sweep_files.h) when dictionary.h5 or
 * state.h5 is written. */
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
  struct sweep_files sweep; /* sweep.h5: the unfinished sweep */
  idx k, p;
  int nonnegative, has_parts, is_conjugate; /* has_parts: state.h5 has sums; conjugate: weights */
  idx rounds, top_s;                        /* when all rows are encoded */
  const real *mean;         /* [p] of the fitted rows, borrowed; NULL: rows are not centred */
  struct fit_extra *extra;  /* borrowed */
  struct phase *write;      /* borrowed: counts the time of the writer thread */
  struct fit_point start;   /* where a resumed run starts; on every rank */
  struct fit_point reached; /* rank 0: the last sweep, but with the best atoms and `lines` */
  gidx reached_best;        /* number of the best sweep */
  struct fit_line *lines;   /* [lines_max] lines of `reached` */
  gidx lines_max;
  float *best;                /* [k][p] the best atoms so far */
  struct fit_sweep sweep_now; /* being published, on rank 0 */
  float *other;               /* rank 0: [k][p] atoms of sweep_now if they are not the best */
  gidx written;               /* rank 0: dictionary.h5 has the lines up to this sweep */
  struct matrix_output file;  /* being written, on rank 0 */
  struct arena arena;
};

/* Claim the output paths; the caller has set files->job.  *minibatch <- --minibatch of the run to
 * be resumed, or -1.  ERR_INPUT: dictionary.h5 was not written by fit.  Collective. */
int fit_files_claim(struct fit_files *files, gidx *minibatch);
/* Call this next: open the job; the caller has set k, p, has_parts and is_conjugate.  With resume
 * read the files.  ERR_INPUT: they are of another job, or not of one fit.  Collective. */
int fit_files_open(struct fit_files *files, const struct run_inputs *inputs);
void fit_files_free(struct fit_files *files);

/* job->sink <- the callbacks of fit_run().  They log a sweep, and publish it while the next one is
 * computed.  A fit by parts waits until the sweep is published.  Not collective. */
struct fit_job;
void fit_files_sink(struct fit_job *job);
/* Call this after fit_run(), with its status: wait until all sweeps are published.  job->best and
 * job->mean are then those of the best sweep.  Collective. */
int fit_files_settle(struct fit_job *job, int status);

/* The fit has ended: write dictionary.h5 again, with the lines of all sweeps and files->extra,
 * unless it has these lines and there is no extra.  Collective. */
int fit_files_end(struct fit_files *files);

#endif
