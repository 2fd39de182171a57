/* SPDX-License-Identifier: BSD-3-Clause
 * A copy of what the files of a sweep say, for a thread that writes them while the state changes.
 *
 * Floor: refit.  Knows no files.  Of a state of one rank; not collective. */
#ifndef REFIT_STATE_COPY_H
#define REFIT_STATE_COPY_H

#include "model/results.h"
#include "refit/refit.h"

struct state_copy {
  struct refit_state state; /* only what the files say is its own; the rest is not to be used */
  struct metrics metrics;
  struct atom_step *steps; /* [k] */
  /* Of the state: its own, too. */
  struct refit_task task;
  struct comm c;
  idx *atoms;
  float *score;
  real *codes, *frames;
  gidx *density;
  struct arena arena;
};

/* Allocate for states of these sizes, unless that takes more than a quarter of the memory that this
 * rank may take; then is_open is 0, and the log says so. */
int state_copy_open(struct state_copy *copy, const struct refit_state *state, int *is_open);

/* Copy, by so many threads. */
void state_copy_take(struct state_copy *copy, const struct refit_state *state,
                     const struct metrics *metrics, const struct atom_step *steps, int threads);

void state_copy_free(struct state_copy *copy);

#endif
