/* SPDX-License-Identifier: BSD-3-Clause
 * With how many atoms a row are atoms to be fitted?  The rule of (N.39).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_CHOICE_H
#define MODEL_CHOICE_H

#include "base/types.h"

enum { CHOICE_MOST = 4 }; /* candidates: the whole, a half, a quarter, an eighth */

/* What a candidate may lose against the best one: this share of what that leaves unexplained, and
 * so much of F1; and what fewer atoms a row have to gain in stability. */
#define CHOICE_UNEXPLAINED 0.2
#define CHOICE_F1 0.02
#define CHOICE_GAIN 0.03

struct candidate {
  idx top_s;
  real pw_mcc;    /* of fits of two halves of the rows */
  real explained; /* variance of rows that were not fitted, encoded with as many atoms as all */
  real f1;        /* of single atoms for labels; NaN: there are none */
  int explains, tells; /* <- within what may be lost */
};

/* c[CHOICE_MOST] <- the candidates for so many atoms a row, the largest first; returns how many. */
int candidates_make(idx encode_s, struct candidate *c);
/* Fill in what follows, and return the one that is chosen. */
int candidate_choose(struct candidate *c, int count);

#endif
