/* SPDX-License-Identifier: BSD-3-Clause
 * Routing: exact scores, the order of atoms, top-s lists and their merge (N.1 to N.3r).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A list is an array of top_k entries in the order of (N.2); if there are fewer atoms, the last
 * entries are ENTRY_NONE. */
#ifndef MODEL_ROUTE_H
#define MODEL_ROUTE_H

#include "base/types.h"

enum { MAX_TOP_S = 256 };

/* One atom of a list.  value orders the list: for d = 1 the signed score, or its positive part if
 * codes are nonnegative; for frames the gate: the squared norm of the scores of the row, scaled by
 * the row's power of two. */
struct entry {
  float value;
  idx atom; /* global; -1: none */
};
#define ENTRY_NONE ((struct entry){0, -1})

/* The first score or gate that is not finite: the one in the lowest row of the block, and there of
 * the lowest atom. */
struct bad_score {
  idx row, atom; /* row -1: none */
};

/* The exact score of a row and a vector (N.1): each term is rounded twice. */
float route_score(const float *row, const float *vector, idx p);

/* The value of a score if codes are nonnegative (N.2): +0 if it is negative.  A score that is not
 * finite stays as it is. */
float route_positive(float score);

/* The power of two by which rows are scaled for frames (N.2), so that squares of scores neither
 * overflow nor lose digits.  The exponent is 0 for most rows.  out[p] <- row 2^power, rounded
 * once. */
int route_power(const float *row, idx p);
void route_scale(const float *row, int power, idx p, float *out);

/* The value of a scaled row and a frame[d][p]: for d = 1 the score, otherwise the gate.  The
 * squares of the gate are added in order. */
float route_value(const float *row, const float *frame, idx d, idx p);

/* Does a come before b (N.2)?  The order is strict and total over distinct atoms; ENTRY_NONE is
 * last. */
int entry_before(struct entry a, struct entry b);

/* The stored score of an entry: for d = 1 the signed score; for frames fl32(sqrt(gate)) times
 * 2^-power, with the row's power. */
float entry_score(struct entry e, idx d, int power);

/* The number of positions of a support that the first r of `rounds` rounds fill (N.3r).  Round r =
 * 1, 2, ... fills positions round_end(r - 1) .. round_end(r) - 1. */
idx round_end(idx top_s, idx rounds, idx r);

/* Atoms that a row must not be routed to: the first `count` of each row of atoms[n][stride]. */
struct exclusions {
  const idx *atoms;
  idx count, stride;
};

/* Reference of (N.1) to (N.3): lists[n][top_k] <- the lists of rows[n][p] over atoms[count][d][p],
 * with global numbers atom_of[count].  *bad is set when a score is not finite, and never reset.
 * ERR_MEMORY. */
struct route_reference {
  idx n, p, d, top_k, count;
  int nonnegative; /* d = 1 */
  const float *rows, *atoms;
  const idx *atom_of;
  struct exclusions excluded;
};
int route_reference(const struct route_reference *r, struct entry *lists, struct bad_score *bad);

/* Merge parts >= 1 lists of top_k entries into out[top_k]; list i is at lists + i * stride. */
void lists_merge(const struct entry *lists, idx parts, gidx stride, idx top_k, struct entry *out);

#endif
