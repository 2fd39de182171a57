/* SPDX-License-Identifier: BSD-3-Clause
 * Going on inside a sweep: the moves that an earlier run accepted are made again.
 *
 * Floor: refit. */
#ifndef REFIT_REPLAY_H
#define REFIT_REPLAY_H

#include "model/classes.h"
#include "refit/refit.h"

/* Residuals and codes, which are those that the sweep began with, become those after the first
 * start->atoms of the classes, for which frames and steps are there already.  Nothing is solved:
 * the codes of a row follow from its residual, the frame before and the frame after.  Batches of
 * max atoms at most.  Not collective. */
int moves_replay(struct refit_state *f, const struct classes *classes, idx max,
                 const struct sweep_start *start, const struct atom_step *steps);

#endif
