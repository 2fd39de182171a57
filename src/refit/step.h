/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a batch of atoms, no two of which share a row.
 *
 * Floor: refit. */
#ifndef REFIT_STEP_H
#define REFIT_STEP_H

#include "refit/batch_systems.h"
#include "refit/refit.h"

/* Solve the batch's systems and try the steps on the rows.  A step is accepted, or its system is
 * solved again with a larger ridge, until every member is decided.  Frames, codes and residuals
 * change for accepted members.  steps[b->count], in the batch's order, is written on every rank.
 * Collective; a failure of this rank at the end is left to the next exchange (comm/failure.h). */
int atom_batch_step(struct refit_state *f, const struct atom_batch *b,
                    const struct batch_systems *a, struct phase *solving, struct phase *moving,
                    struct atom_step *steps);

/* *bytes <- the peak memory of atom_batch_step(), without the batch and its systems of q
 * directions, from a dry run of its allocations.  Not collective. */
int atom_batch_step_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                          gidx *bytes);

#endif
