/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a refit: where they are, what a resumed run finds and checks, and when sweeps are
 * saved and published.
 *
 * Floor: cli.
 *
 * After a sweep dictionary.h5 is published, then supports.h5.  Each has the hashes of both, so that
 * only files of one sweep count as a pair.  Then sweep.h5, the saved sweep (sweep_files.h), is
 * removed.  A resumed run makes missing supports again, from the dictionary. */
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
  gidx sweeps;    /* --sweeps; set by the caller */
  struct sweep_files sweep;
  int has_supports; /* resumed: supports.h5 exists */
  struct {          /* the files of the earlier run */
    struct dictionary_input dictionary;
    struct supports_input supports;
    int is_pair; /* both files are of one sweep */
  } previous;
  struct fit_facts facts;     /* .sweeps: number of sweeps done; the caller sets .start */
  struct history_line *lines; /* rank 0: the start, then one line per sweep */
  struct phase *write;        /* borrowed: counts the time of publishing */
  /* With --keep-supports: called on rank 0 with job.of, instead of publishing `result`. */
  int (*save_instead)(void *of);
  struct arena arena;
  /* Being published.  If the job computes meanwhile, `result` points into `copy`. */
  struct refit_result result;
  struct fit_facts published; /* the facts of `result` */
  struct state_copy copy;
  /* Being written, on rank 0. */
  struct matrix_output dictionary_file;
  struct supports_output supports_file;
};

/* Open the job, which the caller has set.  With resume find the files of the earlier run.
 * ERR_INPUT: they are of another job.  ERR_USAGE: too many sweeps.  ERR_CREATE.  Collective. */
int refit_files_open(struct refit_files *files, const struct run_inputs *inputs);
void refit_files_free(struct refit_files *files);

/* Add to the identity what is known once the inputs are loaded, such as their hashes. */
int refit_identity_fill(struct identity_text *t, const struct fit_inputs *inputs,
                        const struct refit_state *state);

/* Without --reroute: note the hash of the classes.  ERR_INPUT: a resumed run has other classes. */
int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name);

/* The state, loaded from the inputs, becomes that of the last sweep.  If supports.h5 is not of this
 * sweep, it is made again: with the supports of the inputs, or with --reroute by routing.
 * ERR_INPUT names what differs from the earlier run.  Collective. */
struct refit_job;
int refit_job_resume(struct refit_job *j);
/* May the job `of` stop while rows are routed and coded?  Not collective. */
int refit_may_stop(void *of);

/* With one rank whose GPU takes the steps: publish in the background from here on, if a copy of the
 * state fits in memory.  Not collective. */
int refit_beside_begin(struct refit_job *j);
/* Set the facts of the next sweep; j->begun <- what an earlier run has done of it, with the same
 * value on every rank.  Not collective. */
int refit_sweep_begin(struct refit_job *j);
/* Publish the result of a sweep.  While an earlier result is being published, a sweep is left out,
 * unless it is the last, or --save-seconds have passed since that publishing began. */
int refit_sweep_publish(struct refit_job *j);
/* Call this after the sweeps, with their status: publish a sweep that was left out, and wait. */
int refit_sweeps_settle(struct refit_job *j, int status);

#endif
