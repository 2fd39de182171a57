/* SPDX-License-Identifier: BSD-3-Clause
 * One refit, from the command line to the report.  cmd_refit.c opens it, refit_job.c runs and
 * reports sweeps, and refit_files.c saves and publishes them.
 *
 * Floor: cli.  Functions are collective, unless a comment says otherwise. */
#ifndef CLI_REFIT_JOB_H
#define CLI_REFIT_JOB_H

#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "cli/refit_files.h"
#include "fit/validation.h"
#include "io/rows.h"
#include "refit/refit.h"
#include "refit/resident.h"

struct refit_options {
  struct general_options general;
  struct output_options output;
  struct fit_names names;
  struct fit_compute compute;
  idx sweeps, directions, cosine_limit;
  int reroute, resume, dry_run;
  real max_seconds, save_seconds;
  const char *filter, *holdout, *device, *share, *rates;
  int keep; /* --keep-supports (keep.h) */
  const char *encoder, *codes;
};
struct refit_job {
  struct run *run;
  struct comm *c;    /* all ranks */
  struct comm *rows; /* the ranks that divide the rows: c, or &alone if each rank has all rows */
  struct comm alone; /* of this rank */
  const struct refit_options *o;
  struct refit_files files;
  struct fit_inputs inputs;
  struct rows_input holdout; /* --holdout */
  real held;                 /* explained variance of these rows; NaN: there are none */
  struct refit_task task;
  struct refit_state state;
  struct sparse_coder coder;        /* with --reroute or --holdout, and on a GPU */
  struct fit_validation validation; /* with --holdout */
  char device[64];                  /* as files name it: "cpu avx512" */
  struct coded coded;               /* the state's rows, if they stay on a GPU */
  struct resident resident;
  struct classes classes;
  struct sweep_start begun; /* what an earlier run has done of the next sweep */
  struct arena arena;
  struct atom_step *steps; /* [k] */
  gidx *density;           /* [k] */
  int is_left_out;         /* the last sweep is neither published nor being published */
  real handed_over;        /* log_seconds() when publishing last began */
  real tss;
  struct metrics metrics;
  struct phase phases[REFIT_PHASES];
  gidx resumed;            /* sweeps that an earlier run has done */
  struct sweep_counts all; /* sums over this run's sweeps */
};

/* Set the facts of the start, and line 0 of the history: what the codes explain before the first
 * sweep. */
int refit_start_evaluate(struct refit_job *j);
/* *explained, on rank 0 <- the explained variance of the state's codes, computed from the
 * residuals.  said: the explained variance that `file` has; warn if the two differ. */
int refit_state_evaluate(struct refit_job *j, const char *file, real said, real *explained);
/* With --holdout: j->held <- the explained variance of the held-out rows.  The job may be
 * stopped. */
int refit_held_out_evaluate(struct refit_job *j);

/* Read the classes of --classes, or find those of the state's supports. */
int refit_classes_find(struct refit_job *j);
/* Round the frames to float32, route the rows again if reroute is 1, solve the codes, and evaluate
 * them.  The job may be stopped. */
int refit_state_finish(struct refit_job *j, int reroute);
/* Run sweeps until there are --sweeps of them, or the job is asked to stop. */
int refit_sweeps_run(struct refit_job *j);

#endif
