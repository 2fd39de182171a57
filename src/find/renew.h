/* SPDX-License-Identifier: BSD-3-Clause
 * New atoms in place of old ones.  A new atom is the residual of a row of the batch, or the row
 * itself if the batch is not encoded.  If there are too few rows, it is random.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_RENEW_H
#define FIND_RENEW_H

#include "find/find_impl.h"

/* Replace useless atoms (find_is_useless()), and atoms that nearly equal a more frequent one.
 * Collective. */
int atoms_replace(struct finder *f);

/* At the end keep plan.k atoms.  First, useless atoms are dropped, and so are atoms whose |cosine|
 * with a more frequent atom that stays is large.  Of the others the most frequent stay.  If too few
 * are left, the most frequent of the dropped ones stay, too.  Collective. */
int atoms_keep(struct finder *f);

/* out[n][p] <- the residuals of rows first .. first + n - 1 of the batch, which must be rows of
 * this rank.  This function and those below are not collective. */
int left_get(struct finder *f, gidx first, gidx n, float *out);
/* atom_is_there() returns 0 if all values are 0.  atom_draw() draws random atom `number` of this
 * update.  atom_begin() sets an atom to `from`, and its mean and count to 0. */
int atom_is_there(const float *atom, idx p);
void atom_draw(const struct finder *f, gidx number, float *atom);
void atom_begin(struct finder *f, idx atom, const float *from);

#endif
