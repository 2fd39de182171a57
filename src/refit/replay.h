/* SPDX-License-Identifier: BSD-3-Clause
 * Resuming inside a sweep: the moves that an earlier run accepted are made again.
 *
 * Floor: refit. */
#ifndef REFIT_REPLAY_H
#define REFIT_REPLAY_H

#include "model/classes.h"
#include "refit/refit.h"

/* Bring residuals and codes from the start of the sweep to the point after the first start->atoms
 * atoms of the classes.  The frames of f, and steps[], already hold the results of these atoms.
 * Nothing is solved: the codes of a row follow from its residual, the old frame and the new frame.
 * Batches have at most `max` atoms.  Not collective. */
int moves_replay(struct refit_state *f, const struct classes *classes, idx max,
                 const struct sweep_start *start, const struct atom_step *steps);

#endif
