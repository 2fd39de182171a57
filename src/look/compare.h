/* SPDX-License-Identifier: BSD-3-Clause
 * Compare two dictionaries: for each atom of either dictionary, find the nearest atom of the other
 * one (N.22).
 *
 * Floor: look.  Knows no files.
 *
 * The ranks hold shards of one dictionary, as in encode.  All ranks read the other dictionary in
 * slices.  The atoms of a slice are routed like rows, with one atom per row.  Then the dictionaries
 * change roles.  So a rank holds only a shard of one dictionary and a slice of the other. */
#ifndef LOOK_COMPARE_H
#define LOOK_COMPARE_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/matches.h"

struct compare_task {
  const struct atom_source *atoms[2]; /* d = 1, with equal numbers of columns */
  int nonnegative; /* codes are nonnegative: compare cosines; 0: compare |cosines| */
  int normalize;   /* scale all atoms to norm 1 first */
  real above;      /* an atom has a match if the |cosine| of its nearest atom is above this */
  int threads;
  const char *variant; /* of the CPU (device.h) */
};

struct compare_result { /* the same on every rank */
  struct matches of[2]; /* for each dictionary: nearest atoms in the other one */
  gidx mutual;          /* pairs of atoms, each the other's nearest, with |cosine| > above */
  uint64_t hash[2];     /* hashes of the dictionaries as read (model/identity.h) */
  uint64_t fingerprint; /* of both matches */
  struct arena arena;
};

/* ERR_INPUT: atoms are frames of several vectors, the dictionaries have different numbers of
 * columns, or an atom does not have norm 1 (after scaling, with `normalize`).  Collective; the same
 * status on every rank. */
int compare_dictionaries(struct comm *c, const struct compare_task *t, struct compare_result *r);
void compare_free(struct compare_result *r);

#endif
