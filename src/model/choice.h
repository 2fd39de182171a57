/* SPDX-License-Identifier: BSD-3-Clause
 * How many atoms per row a fit should use: the rule of (N.39).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_CHOICE_H
#define MODEL_CHOICE_H

#include "base/types.h"

/* Candidates: encode_s (the option --encode-s: atoms per row of the final encoding), and a half, a
 * quarter and an eighth of it. */
enum { CHOICE_MOST = 4 };

/* The unexplained variance of a candidate may exceed the smallest one of all candidates by at most
 * the part CHOICE_UNEXPLAINED of the smallest one.  Its F1 may be lower than the best one by at
 * most CHOICE_F1.  A candidate with fewer atoms per row is preferred only if its stability (pw_mcc)
 * is higher by more than CHOICE_GAIN. */
#define CHOICE_UNEXPLAINED 0.2
#define CHOICE_F1 0.02
#define CHOICE_GAIN 0.03

struct candidate {
  idx top_s;
  real pw_mcc; /* between fits of the two halves of the rows */
  /* explained variance of rows that were not fitted; for all candidates these rows are encoded with
   * encode_s atoms */
  real explained;
  real f1;             /* of single atoms for labels; NaN: there are no labels */
  int explains, tells; /* results: is `explained` near enough to the best, and is f1? */
};

/* c[CHOICE_MOST] <- the candidates, the largest first; returns how many there are. */
int candidates_make(idx encode_s, struct candidate *c);
/* Set explains and tells, and return the index of the chosen candidate. */
int candidate_choose(struct candidate *c, int count);

#endif
