/* SPDX-License-Identifier: BSD-3-Clause
 * A copy of what the files of a sweep contain, for a thread that writes them while the state
 * changes.
 *
 * Floor: refit.  Knows no files.  For a state on one rank; not collective. */
#ifndef REFIT_STATE_COPY_H
#define REFIT_STATE_COPY_H

#include "model/results.h"
#include "refit/refit.h"

struct state_copy {
  struct refit_state state; /* only what files contain is copied; do not use the rest */
  struct metrics metrics;
  struct atom_step *steps; /* [k] */
  /* Arrays and structs that `state` points to. */
  struct refit_task task;
  struct comm c;
  idx *atoms;
  float *score;
  real *codes, *frames;
  gidx *density;
  struct arena arena;
};

/* Allocate for states of these sizes.  *is_open <- 0, with a line in the log, if the copy takes
 * more than a quarter of the memory that this rank may take, or if it cannot be allocated. */
int state_copy_open(struct state_copy *copy, const struct refit_state *state, int *is_open);

/* Copy, with `threads` threads. */
void state_copy_take(struct state_copy *copy, const struct refit_state *state,
                     const struct metrics *metrics, const struct atom_step *steps, int threads);

void state_copy_free(struct state_copy *copy);

#endif
