/* SPDX-License-Identifier: BSD-3-Clause
 * Comparing two dictionaries: the nearest atom of the other one for each atom of both (N.22).
 *
 * Floor: look.  Knows no files.
 *
 * One dictionary is dealt to the ranks as in encode.  All ranks read the other one in slices, whose
 * atoms are routed as rows, each to one atom.  Then the dictionaries change roles.  So no rank
 * holds more than its share of a dictionary, and a slice of the other. */
#ifndef LOOK_COMPARE_H
#define LOOK_COMPARE_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/matches.h"

struct compare_task {
  const struct atom_source *atoms[2]; /* d = 1, with equal numbers of columns */
  int nonnegative; /* both are for nonnegative codes: cosines count with their sign */
  int normalize;   /* scale all atoms to norm 1 first */
  real above;      /* a partner must have a cosine above this */
  int threads;
  const char *variant; /* of the CPU (device.h) */
};

struct compare_result { /* the same on every rank */
  struct matches of[2]; /* partners of each dictionary's atoms in the other */
  gidx mutual;
  uint64_t hash[2]; /* of the dictionaries as read (model/identity.h) */
  uint64_t fingerprint;
  struct arena arena;
};

/* ERR_INPUT: frames, different columns, or atoms that are not of norm 1.  Collective; the same
 * status on every rank. */
int compare_dictionaries(struct comm *c, const struct compare_task *t, struct compare_result *r);
void compare_free(struct compare_result *r);

#endif
