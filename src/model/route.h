/* SPDX-License-Identifier: BSD-3-Clause
 * Routing: exact scores, the order of atoms, top-s lists and their merge (N.1 to N.3r).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A list is an array of `take` entries in the order of (N.2); where a dictionary has fewer atoms
 * left, the rest is ENTRY_NONE. */
#ifndef MODEL_ROUTE_H
#define MODEL_ROUTE_H

#include "base/types.h"

enum { TOP_S_MOST = 256 };

/* One atom of a list.  value is the signed score for d = 1 and the gate for frames, so that the
 * order needs nothing else. */
struct entry {
  float value;
  idx atom; /* global; -1: none */
};
#define ENTRY_NONE ((struct entry){0, -1})

/* A score or gate that is not finite: the lowest row (of the block), then the lowest atom. */
struct bad_score {
  idx row, atom; /* row -1: none */
};

/* (N.1) The exact score of a row and an atom vector, two roundings a term. */
float route_score(const float *row, const float *vector, idx p);

/* The value of a row and a frame[d][p]: the score for d = 1, else the gate, a chain of squares. */
float route_value(const float *row, const float *frame, idx d, idx p);

/* (N.2) Does a come before b?  Strict and total over distinct atoms; ENTRY_NONE comes last. */
int entry_before(struct entry a, struct entry b);

/* The stored score of an entry: the signed score for d = 1, else fl32(sqrt(gate)). */
float entry_score(struct entry e, idx d);

/* Positions of the support that round r of R (from 1) fills: first .. last - 1 (N.3r). */
idx round_end(idx top_s, idx rounds, idx r);

/* Atoms that a row may not be routed to: excluded[n][stride], of which the first count are used. */
struct exclusions {
  const idx *atoms;
  idx count, stride;
};

/* Reference of (N.1) to (N.3): lists[n][take] of rows[n][p] over count atoms[count][d][p]; atom_of
 * gives their global numbers.  bad is set, never reset. */
struct route_reference {
  idx n, p, d, take, count;
  const float *rows, *atoms;
  const idx *atom_of;
  struct exclusions excluded;
};
void route_reference(const struct route_reference *r, struct entry *lists, struct bad_score *bad);

/* Merge parts >= 1 lists of take entries each into out[take]; part i is at lists + i * stride. */
void lists_merge(const struct entry *lists, idx parts, gidx stride, idx take, struct entry *out);

#endif
