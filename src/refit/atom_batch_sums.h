/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the rows of the atoms of a batch, each made at the atom's owner by (N.0).
 *
 * Floor: refit. */
#ifndef REFIT_ATOM_BATCH_SUMS_H
#define REFIT_ATOM_BATCH_SUMS_H

#include "refit/atom_batch.h"

/* out[mine][width] <- the sums by (N.0) of values[segments][width] of all ranks; members with
 * active[member] 0, which every rank knows, are left alone.  NULL: all are active.  Collective. */
int atom_batch_sums_to_owner(const struct atom_batch *b, const struct refit_state *f,
                             const real *values, idx width, const idx *active, real *out);

/* *bytes <- what that takes at most while it runs: its allocations, run dry.  Not collective. */
int atom_batch_sums_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes);

#endif
