/* SPDX-License-Identifier: BSD-3-Clause
 * New atoms in place of old ones.  A new atom is the residual of a row of the batch, or the row
 * itself if the batch is not encoded.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_RENEW_H
#define FIND_RENEW_H

#include "find/find_impl.h"

/* Replace dead atoms, and those that nearly equal another one.  Collective. */
int atoms_replace(struct finder *f);

/* At the end keep the most frequent atoms; of atoms that are near each other only the first.
 * Collective. */
int atoms_keep(struct finder *f);

/* out[n][p] <- the residuals of own rows first .. first + n - 1 of the batch.  This function and
 * those below are not collective. */
int left_get(struct finder *f, gidx first, gidx n, float *out);
/* Is the atom not 0?  Then: draw random atom `number` of this update; set an atom to a new
 * start. */
int atom_is_there(const float *atom, idx p);
void atom_draw(const struct finder *f, gidx number, float *atom);
void atom_begin(struct finder *f, idx atom, const float *from);

#endif
