/* SPDX-License-Identifier: BSD-3-Clause
 * Routing: exact scores, the order of atoms, top-s lists and their merge (N.1 to N.3r).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A list is an array of top_k entries in the order of (N.2); where there are fewer atoms, the rest
 * is ENTRY_NONE. */
#ifndef MODEL_ROUTE_H
#define MODEL_ROUTE_H

#include "base/types.h"

enum { MAX_TOP_S = 256 };

/* One atom of a list.  value is the signed score for d = 1, or its positive part, and the gate, the
 * squared norm of the scores, for frames, of the row times its power of two; the order needs no
 * more. */
struct entry {
  float value;
  idx atom; /* global; -1: none */
};
#define ENTRY_NONE ((struct entry){0, -1})

/* The first score or gate that is not finite: the lowest row of the block, then the lowest atom. */
struct bad_score {
  idx row, atom; /* row -1: none */
};

/* The exact score of a row and a vector (N.1): each term is rounded twice. */
float route_score(const float *row, const float *vector, idx p);

/* The value of a score where codes are to be nonnegative (N.2): +0 where it is negative.  One that
 * is not finite stays as it is. */
float route_positive(float score);

/* The power of two of a row of frames (N.2), with which squares of scores are in range: 0 for most
 * rows.  out[p] <- row 2^power, rounded once. */
int route_power(const float *row, idx p);
void route_scale(const float *row, int power, idx p, float *out);

/* The value of a row, times its power of two, and a frame[d][p]: the score for d = 1, else the
 * gate, squares summed in order. */
float route_value(const float *row, const float *frame, idx d, idx p);

/* Does a come before b (N.2)?  The order is strict and total over distinct atoms, ENTRY_NONE
 * last. */
int entry_before(struct entry a, struct entry b);

/* The stored score of an entry: the signed score for d = 1, else fl32(sqrt(gate)), times 2^-power,
 * the row's. */
float entry_score(struct entry e, idx d, int power);

/* How many positions of a support the first r of `rounds` rounds have filled (N.3r): round r = 1,
 * 2, ..  fills round_end(r - 1) .. round_end(r) - 1. */
idx round_end(idx top_s, idx rounds, idx r);

/* Atoms that rows may not be routed to: the first count of each row of atoms[n][stride]. */
struct exclusions {
  const idx *atoms;
  idx count, stride;
};

/* Reference of (N.1) to (N.3): lists[n][top_k] <- those of rows[n][p] over atoms[count][d][p],
 * whose global numbers are atom_of[count].  *bad is set when something is not finite, and never
 * reset.  ERR_MEMORY. */
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
