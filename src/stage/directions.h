/* SPDX-License-Identifier: BSD-3-Clause
 * Directions of a batch of atoms over all ranks (model/directions.h).
 *
 * Floor: stage.
 *
 * The atoms of a batch may share rows here: frames, codes and residuals stay as they are. */
#ifndef STAGE_DIRECTIONS_H
#define STAGE_DIRECTIONS_H

#include "stage/batch.h"

/* Atoms that a batch may have, and the bytes that the batch, e and directions_find() take at most
 * on this rank, of a fit that has its sizes.  Not collective. */
idx directions_batch(const struct fit *f, idx q);
gidx directions_bytes(const struct fit *f, idx q);

/* e[b->count][q][p] <- the directions of each member, kept[b->count] how many; on every rank, in
 * the batch's order of members.  The fit's residuals must be those of its codes.  Collective. */
int directions_find(struct fit *f, const struct batch *b, idx q, real *e, idx *kept);

#endif
