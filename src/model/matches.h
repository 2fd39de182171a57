/* SPDX-License-Identifier: BSD-3-Clause
 * Partners: the nearest atom in another dictionary for each atom, and statistics of them (N.22).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The nearest atom is found by routing: the atom is routed as a row over the other dictionary, to
 * one atom (model/route.h). */
#ifndef MODEL_MATCHES_H
#define MODEL_MATCHES_H

#include "base/types.h"

struct matches {
  idx k;         /* number of atoms; each has a partner */
  idx *nearest;  /* [k] atom of the other dictionary */
  float *cosine; /* [k] the score of (N.1); for nonnegative codes max(score, 0) */
  real mean;     /* of |cosine|, the mean max cosine */
  gidx matched;  /* number of atoms with |cosine| above the bound */
};

/* Set mean and matched from k and cosine.  above: the bound. */
void matches_count(struct matches *p, real above);

/* The number of pairs of atoms that are nearest to each other, with |cosine| above the bound. */
gidx matches_mutual(const struct matches *a, const struct matches *b, real above);

/* worst[most] <- the atoms with |cosine| at most the bound, the lowest |cosine| first; of equal
 * ones the lower atom comes first.  Returns their number, which is at most `most`. */
idx matches_lonely(const struct matches *p, real above, idx most, idx *worst);

#endif
