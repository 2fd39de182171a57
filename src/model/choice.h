/* SPDX-License-Identifier: BSD-3-Clause
 * How many atoms per row a fit should use: the rule of (N.39).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_CHOICE_H
#define MODEL_CHOICE_H

#include "base/types.h"

enum { CHOICE_MOST = 4 }; /* candidates: encode_s, and a half, a quarter, an eighth of it */

/* A candidate may leave more variance unexplained than the best one, by at most this share of what
 * the best one leaves; and may have a lower F1, by at most CHOICE_F1.  Fewer atoms per row must
 * gain CHOICE_GAIN in stability (pw_mcc). */
#define CHOICE_UNEXPLAINED 0.2
#define CHOICE_F1 0.02
#define CHOICE_GAIN 0.03

struct candidate {
  idx top_s;
  real pw_mcc;         /* between fits of the two halves of the rows */
  real explained;      /* variance of rows that were not fitted; all candidates encode with encode_s
                   * atoms */
  real f1;             /* of single atoms for labels; NaN: there are no labels */
  int explains, tells; /* <- it loses no more variance, no more F1, than allowed */
};

/* c[CHOICE_MOST] <- the candidates, the largest first; returns how many there are. */
int candidates_make(idx encode_s, struct candidate *c);
/* Set explains and tells, and return the index of the chosen candidate. */
int candidate_choose(struct candidate *c, int count);

#endif
