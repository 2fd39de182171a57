/* SPDX-License-Identifier: BSD-3-Clause
 * Pair the atoms of two dictionaries one to one, so that the sum of the cosines of the pairs is
 * largest (N.22p).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank holds the whole second dictionary, of L atoms, and computes with slices of the first
 * one, of K atoms.  Rank 0 holds the cosines of all pairs.  They take 4 K L bytes, or 8 K L if
 * K > L. */
#ifndef LOOK_PAIRS_H
#define LOOK_PAIRS_H

#include "look/compare.h"
#include "model/pairs.h"

/* Call on rank 0.  ERR_MEMORY: it has too little memory for the cosines of k x l pairs. */
int pairs_memory_check(gidx k, gidx l);

/* Set p->match and p->cosine on every rank.  The caller has set p->k and p->l, and allocated both
 * arrays.  Call compare_dictionaries() first: it checks the inputs.  ERR_MEMORY: rank 0 has too
 * little memory for the cosines.  Collective; the same status on every rank. */
int pairs_find(struct comm *c, const struct compare_task *t, struct pairs *p);

#endif
