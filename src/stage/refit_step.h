/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a batch of atoms, none of which share a row.
 *
 * Floor: stage. */
#ifndef STAGE_REFIT_STEP_H
#define STAGE_REFIT_STEP_H

#include "stage/assemble.h"
#include "stage/refit.h"

/* Solve, try, accept or retry until every member is decided; frames, codes and residuals of
 * accepted ones move.  steps[b->count] in the batch's order, on every rank.  Collective. */
int batch_step(struct fit *f, const struct batch *b, const struct assembly *a,
               struct phase *solving, struct phase *moving, struct atom_step *steps);

#endif
