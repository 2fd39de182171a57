/* SPDX-License-Identifier: BSD-3-Clause
 * Pairing the atoms of two dictionaries one to one, so that the sum of cosines is the largest
 * (N.22p).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank has the second dictionary and takes slices of the first; rank 0 has the cosines of all
 * pairs, 4 K L bytes, and twice that where K > L. */
#ifndef LOOK_PAIRS_H
#define LOOK_PAIRS_H

#include "look/compare.h"
#include "model/pairs.h"

/* Has rank 0, which calls it, room for the cosines of k and l atoms?  ERR_MEMORY: it has not. */
int pairs_memory_check(gidx k, gidx l);

/* p->match and p->cosine, of p->k and p->l atoms, are filled in on every rank.  The dictionaries
 * were compared before.  ERR_MEMORY: rank 0 has no room for the cosines.  Collective; the same
 * status on every rank. */
int pairs_find(struct comm *c, const struct compare_task *t, struct pairs *p);

#endif
