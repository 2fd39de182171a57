/* SPDX-License-Identifier: BSD-3-Clause
 * Atoms that are new: what is left of the rows of the batch at hand, or these rows as they are if
 * it was not coded.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_RENEW_H
#define FIND_RENEW_H

#include "find/find_impl.h"

/* Twins and dead atoms start anew.  Collective. */
int atoms_replace(struct finder *f);

/* At the end the most frequent atoms are left, of those that are near to each other the first.
 * Collective. */
int atoms_keep(struct finder *f);

/* out[n][p] <- what is left of own rows first .. first + n - 1 of the batch.  Not collective, as
 * the rest. */
int left_get(struct finder *f, gidx first, gidx n, float *out);
/* Is an atom not 0?  Draw a random one, number `number` of this update; an atom begins. */
int atom_is_there(const float *atom, idx p);
void atom_draw(const struct finder *f, gidx number, float *atom);
void atom_begin(struct finder *f, idx atom, const float *from);

#endif
