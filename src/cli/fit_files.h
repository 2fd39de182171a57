/* SPDX-License-Identifier: BSD-3-Clause
 * The files of a fit: where they are, what a resumed run finds, and writing them after a sweep.
 *
 * Floor: cli.
 *
 * dictionary.h5 is written after every sweep that is the best so far, state.h5 after every other
 * one, and with a minibatch after every one, before dictionary.h5.  Either holds all that a fit
 * goes on from, and the lines of all sweeps until then, so that a run that is stopped between the
 * two, or anywhere else, leaves the longer of them to go on from.  A state.h5 that the next
 * dictionary.h5 makes useless is removed, and so is a supports.h5 of other atoms, and sweep.h5
 * (sweep_files.h) with any of them. */
#ifndef CLI_FIT_FILES_H
#define CLI_FIT_FILES_H

#include "cli/command.h"
#include "cli/sweep_files.h"
#include "fit/fit.h"
#include "io/dictionary.h"
#include "io/fit_history.h"
#include "io/fit_extra.h"

struct fit_files {
  struct output_place dictionary, state, supports; /* rank 0 */
  struct sweep_files sweep;                        /* what there is of the sweep in work */
  idx k, p;
  int nonnegative, has_parts; /* has_parts: state.h5 has the sums of what was fitted */
  idx rounds, top_s;          /* that rows are encoded with */
  const char *device;         /* borrowed: what computes, once it is known */
  int has_start;              /* resumed: there is something to go on from */
  struct fit_point start;     /* on every rank */
  float *best;                /* [k][p] the best atoms so far */
  struct fit_record record;
  struct fit_extra *extra;    /* borrowed */
  struct history_line *lines; /* [lines_max] */
  gidx lines_max;
  struct matrix_output file; /* being written, on rank 0 */
  struct arena arena;
};

/* Claim the places, first of all.  With resume *minibatch <- that of the run that is there, which
 * its identity has; -1: there is none.  Collective. */
int fit_files_claim(struct fit_files *files, struct run *run, const struct output_options *output,
                    int resume, gidx *minibatch);
/* Then files has k, p, nonnegative and has_parts.  With resume read what is there: ERR_INPUT when
 * it is of another job than run->identity, or the two files are not of one fit.  Collective. */
int fit_files_open(struct fit_files *files, struct run *run, const struct output_options *output,
                   int resume);
void fit_files_free(struct fit_files *files);

/* Take what is to be written of a sweep, its lines, and its atoms if they are the best so far; not
 * while fit_files_write() is at work.  On every rank; not collective.  ERR_MEMORY. */
int fit_files_take(struct fit_files *files, const struct fit_sweep *sweep);

/* Write the sweep that was taken; of *sweep all but its lines is used, and on rank 0 alone.  Any
 * thread; not collective. */
int fit_files_write(struct fit_files *files, const struct run *run, const struct fit_sweep *sweep,
                    int threads);

/* The fit has ended: dictionary.h5 gets the lines of all sweeps.  mean[p], or NULL.  Collective. */
int fit_files_end(struct fit_files *files, struct run *run, const real *mean, int threads);

#endif
