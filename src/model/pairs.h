/* SPDX-License-Identifier: BSD-3-Clause
 * Two dictionaries paired one to one, and what follows: the PW-MCC (N.22p).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Which atoms are a pair is what model/assignment.h says of their cosines. */
#ifndef MODEL_PAIRS_H
#define MODEL_PAIRS_H

#include "base/types.h"

/* Bounds whose shares are counted. */
#define PAIRS_LOW 0.7
#define PAIRS_HIGH 0.9

struct pairs {
  idx k, l;            /* atoms of A and of B */
  idx *match;          /* [k] atom of B, -1: none */
  float *cosine;       /* [k] with it: signed, or its size; 0 where there is none */
  gidx *density;       /* [k] rows in whose support the atom of A is; NULL: not known */
  idx count;           /* min(k, l) */
  idx low, high;       /* pairs above the bounds */
  real mean;           /* of the cosines, the PW-MCC */
  real frequent, rare; /* the same of the quarters of A's atoms of largest and of least density;
                        * NaN where density is not known, or a quarter has no pair */
};

/* Fill in what follows from match, cosine and density; order[k] is for work. */
void pairs_count(struct pairs *p, idx *order);

#endif
