/* SPDX-License-Identifier: BSD-3-Clause
 * Two dictionaries paired one to one, and statistics of the pairs: the PW-MCC (N.22p).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The pairs are the assignment (model/assignment.h) by the atoms' cosines. */
#ifndef MODEL_PAIRS_H
#define MODEL_PAIRS_H

#include "base/types.h"

/* Bounds on the cosine; the pairs above each are counted. */
#define PAIRS_LOW 0.7
#define PAIRS_HIGH 0.9

struct pairs {
  idx k, l;      /* atoms of A and of B */
  idx *match;    /* [k] atom of B, -1: none */
  float *cosine; /* [k] cosine of the pair, or |cosine|; 0 without a pair */
  gidx *density; /* [k] rows whose support has the atom of A; NULL: not known */
  idx count;     /* min(k, l) */
  idx low, high; /* pairs above the bounds */
  real mean;     /* mean of the cosines, which is the PW-MCC */
  /* mean cosines of the quarters of A's atoms with the largest and the smallest density; NaN if
   * density is not known, or a quarter has no pair */
  real frequent, rare;
};

/* Set the other members from match, cosine and density; order[k] is work space. */
void pairs_count(struct pairs *p, idx *order);

#endif
