/* SPDX-License-Identifier: BSD-3-Clause
 * Pairing the atoms of two dictionaries one to one, with the largest sum of cosines (N.22p).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank has the second dictionary, and takes slices of the first.  Rank 0 has the cosines of
 * all pairs, 4 K L bytes, and twice that if K > L. */
#ifndef LOOK_PAIRS_H
#define LOOK_PAIRS_H

#include "look/compare.h"
#include "model/pairs.h"

/* Called on rank 0: ERR_MEMORY if it has no room for the cosines of k and l atoms. */
int pairs_memory_check(gidx k, gidx l);

/* Set p->match and p->cosine, for p->k and p->l atoms, on every rank.  Call compare_dictionaries()
 * before.  ERR_MEMORY: rank 0 has no room for the cosines.  Collective; the same status on every
 * rank. */
int pairs_find(struct comm *c, const struct compare_task *t, struct pairs *p);

#endif
