/* SPDX-License-Identifier: BSD-3-Clause
 * Directions of a batch of atoms over all ranks (model/directions.h).
 *
 * Floor: refit.
 *
 * The atoms of a batch may share rows here: frames, codes and residuals stay as they are. */
#ifndef REFIT_DIRECTIONS_H
#define REFIT_DIRECTIONS_H

#include "refit/atom_batch.h"

/* e[b->count][q][p] <- the directions of each member, kept[b->count] <- their numbers; on every
 * rank, in the batch's order of members.  The state's residuals must be those of its codes.
 * Collective; a failure of this rank may be left to the next exchange (comm/failure.h). */
int directions_find(struct refit_state *f, const struct atom_batch *b, idx q, real *e, idx *kept);

/* *bytes <- the peak memory of directions_find(), from a dry run of its allocations.  Not
 * collective. */
int directions_find_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                          gidx *bytes);

#endif
