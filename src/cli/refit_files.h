/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a refit: where they are, what a resumed run finds, whether that is of the same job,
 * whether the supports there belong to the dictionary; when sweeps are saved, left and published.
 *
 * Floor: cli.
 *
 * After a sweep dictionary.h5 is published, then supports.h5.  Each names the contents of both, so
 * that nothing else is taken for a pair: supports follow from the dictionary, and resuming makes
 * them again.  Then sweep.h5, what there is of the sweep itself, is removed (sweep_files.h). */
#ifndef CLI_REFIT_FILES_H
#define CLI_REFIT_FILES_H

#include "cli/fit_inputs.h"
#include "results/sweep_files.h"
#include "io/dictionary.h"
#include "io/fit_history.h"
#include "io/supports.h"
#include "job/checkpoint.h"
#include "model/sink.h"
#include "refit/refit.h"
#include "refit/state_copy.h"

enum { REFIT_SUPPORTS }; /* in job.more */

/* What a sweep gave. */
struct refit_result {
  const struct refit_state *state;
  const struct metrics *metrics; /* rank 0 */
  const struct atom_step *steps; /* [k] */
};

struct refit_files {
  struct job job; /* of dictionary.h5 and more[0], supports.h5; every rank has the places */
  gidx sweeps;    /* how many there are to be in the end; set by the caller */
  struct sweep_files sweep;
  int has_supports;           /* resumed: they are there, too */
  struct fit_facts facts;     /* sweeps done so far: 0 for a fresh run; .start set by the caller */
  struct history_line *lines; /* on rank 0: the start, then a line a sweep */
  struct phase *write;        /* borrowed: publishing is counted here */
  /* --keep-supports: what it saves, in the place of `result`; of job.of, on rank 0. */
  int (*save_instead)(void *of);
  struct arena arena;
  struct refit_result now; /* set by the caller, before it publishes */
  /* What is being published, and the copy that it is where the job writes beside. */
  struct refit_result result;
  struct fit_facts published; /* of it */
  struct state_copy copy;
  /* Being written, on rank 0. */
  struct matrix_output dictionary_file;
  struct matrix_sink frames_sink;
  struct supports_output supports_file;
};

/* Open the job, which the caller has set.  With resume find what is there.  ERR_INPUT: of another
 * job; ERR_CREATE.  Collective. */
int refit_files_open(struct refit_files *files, const struct run_inputs *inputs);
void refit_files_free(struct refit_files *files);
/* Is the dictionary that is there of this job, as far as run->identity says now?  ERR_INPUT.  Rank
 * 0 alone. */
int refit_files_check(const struct refit_files *files);

/* What the earlier run left. */
struct refit_previous {
  struct dictionary_input dictionary;
  struct supports_input supports;
  int has_supports; /* those of the dictionary's sweep */
};

/* What a job depends on beside its options, once inputs are loaded; resuming compares it. */
int refit_identity_fill(struct identity_text *t, const struct fit_inputs *inputs,
                        const struct refit_state *state);
void refit_previous_close(struct refit_previous *previous);

/* What a run begins with, as far as it is known after the inputs were loaded: all but classes and
 * options. */
void refit_start_note(struct fit_start *start, const struct fit_inputs *inputs,
                      const struct refit_state *state);

/* The classes of the first sweep to come: noted by a fresh run, checked by a resumed one. */
int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name);

/* Take the place of a run that was stopped: the state, loaded from the inputs, becomes that of its
 * last sweep.  Where its supports are not of that they are made again: their atoms are the start's,
 * or are routed.  ERR_INPUT names what is not as the earlier run had it.  Collective. */
struct refit_job;
int refit_job_resume(struct refit_job *j);
/* While rows are routed and coded: may the job, which is `of`, end?  Not collective. */
int refit_may_stop(void *of);
/* Sweep after sweep, until there are as many as are wanted or the job is asked to stop; then all
 * that they gave is there.  Collective. */
int refit_sweeps_run(struct refit_job *j);

#endif
