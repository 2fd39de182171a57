/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a refit: where they are, what a resumed run finds, and writing them after a sweep.
 *
 * Floor: cli.
 *
 * After a sweep dictionary.h5 is published, then supports.h5.  Each names the contents of both, so
 * that what a run leaves that is stopped between the two, or anything else, is not taken for a
 * pair: supports follow from the dictionary, and resuming makes them again (refit_resume.h).  Then
 * what there is of the sweep itself, sweep.h5, is removed (sweep_files.h). */
#ifndef CLI_REFIT_FILES_H
#define CLI_REFIT_FILES_H

#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "cli/sweep_files.h"
#include "io/dictionary.h"
#include "io/fit_history.h"
#include "io/supports.h"
#include "model/sink.h"
#include "refit/refit.h"

struct refit_files {
  struct output_place dictionary, supports; /* on every rank */
  int has_dictionary, has_supports;         /* resumed: these files are there */
  struct sweep_files sweep;                 /* and this one */
  struct fit_facts facts;                   /* sweeps done so far: 0 for a fresh run */
  struct history_line *lines;               /* on rank 0: the start, then a line a sweep */
  struct arena arena;
  /* Being written, on rank 0. */
  struct matrix_output dictionary_file;
  struct matrix_sink frames_sink;
  struct supports_output supports_file;
};

/* Claim the places; sweeps: how many there are to be in the end; wanted: the options.  With resume
 * find what is there.  ERR_USAGE: not a folder, or resumed with other options; ERR_CREATE.
 * Collective. */
int refit_files_open(struct refit_files *files, struct run *run,
                     const struct output_options *output, int resume, gidx sweeps,
                     const struct fit_start *wanted);
void refit_files_free(struct refit_files *files);
/* Is the dictionary that is there of this job, as far as run->identity says now?  ERR_INPUT.  Rank
 * 0 alone. */
int refit_files_check(const struct refit_files *files);

/* Publish what a sweep gave.  Collective. */
struct refit_result {
  const struct refit_state *state;
  const struct fit_inputs *inputs;
  const struct metrics *metrics; /* rank 0 */
  const struct atom_step *steps; /* [k] */
};
int refit_dictionary_write(struct refit_files *files, struct run *run,
                           const struct refit_result *result);
int refit_supports_write(struct refit_files *files, struct run *run,
                         const struct refit_result *result);

#endif
