/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a refit: where they are, what a resumed run finds and checks, and when sweeps are
 * saved and published.
 *
 * Floor: cli.
 *
 * After a sweep dictionary.h5 is published, then supports.h5.  Each names the hashes of both, so
 * that only files of one sweep count as a pair.  Supports follow from the dictionary: if they are
 * missing, a resumed run makes them again.  Then sweep.h5, the saved sweep (sweep_files.h), is
 * removed. */
#ifndef CLI_REFIT_FILES_H
#define CLI_REFIT_FILES_H

#include "cli/fit_inputs.h"
#include "results/sweep_files.h"
#include "io/dictionary.h"
#include "io/fit_history.h"
#include "io/supports.h"
#include "job/checkpoint.h"
#include "refit/refit.h"
#include "refit/state_copy.h"

enum { REFIT_SUPPORTS }; /* in job.more */

/* The result of a sweep. */
struct refit_result {
  const struct refit_state *state;
  const struct metrics *metrics; /* rank 0 */
  const struct atom_step *steps; /* [k] */
};

struct refit_files {
  struct job job; /* of dictionary.h5; more[0] is supports.h5; every rank has the paths */
  gidx sweeps;    /* sweeps in all, at the end; set by the caller */
  struct sweep_files sweep;
  int has_supports; /* resumed: supports.h5 is there, too */
  struct {          /* the results of the earlier run */
    struct dictionary_input dictionary;
    struct supports_input supports;
    int is_pair; /* the supports are those of the dictionary's sweep */
  } previous;
  struct fit_facts facts;     /* sweeps done so far, 0 for a fresh run; the caller sets .start */
  struct history_line *lines; /* rank 0: the start, then one line per sweep */
  struct phase *write;        /* borrowed: publishing is counted here */
  /* With --keep-supports: saves instead of publishing `result`; gets job.of, on rank 0. */
  int (*save_instead)(void *of);
  struct arena arena;
  /* Being published; the state is copied if the job computes meanwhile. */
  struct refit_result result;
  struct fit_facts published; /* the facts of `result` */
  struct state_copy copy;
  /* Being written, on rank 0. */
  struct matrix_output dictionary_file;
  struct supports_output supports_file;
};

/* Open the job, which the caller has set.  With resume find the files of the earlier run.
 * ERR_INPUT when they are of another job; ERR_CREATE.  Collective. */
int refit_files_open(struct refit_files *files, const struct run_inputs *inputs);
void refit_files_free(struct refit_files *files);

/* What a job depends on besides its options, known once inputs are loaded; resuming compares it. */
int refit_identity_fill(struct identity_text *t, const struct fit_inputs *inputs,
                        const struct refit_state *state);

/* The classes of the next sweep: a fresh run notes their hash, a resumed one compares it. */
int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name);

/* Resume: the state, loaded from the inputs, becomes that of the last sweep.  If supports.h5 is not
 * of that sweep, its codes are made again, with the supports of the start or by routing.  ERR_INPUT
 * names what differs from the earlier run.  Collective. */
struct refit_job;
int refit_job_resume(struct refit_job *j);
/* May the job `of` stop while rows are routed and coded?  Not collective. */
int refit_may_stop(void *of);

/* One rank whose GPU takes the steps publishes in the background, if a copy of the state fits in
 * memory.  Not collective. */
int refit_beside_begin(struct refit_job *j);
/* Set the next sweep, and what an earlier run has done of it.  The same on every rank; not
 * collective. */
int refit_sweep_begin(struct refit_job *j);
/* Publish the result of a sweep, or leave it out while an earlier one is being published. */
int refit_sweep_publish(struct refit_job *j);
/* Sweeps have ended, with this status: publish one that was left out, and wait. */
int refit_sweeps_settle(struct refit_job *j, int status);

#endif
