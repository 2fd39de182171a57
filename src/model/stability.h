/* SPDX-License-Identifier: BSD-3-Clause
 * How well fits with other seeds find the same atoms as a dictionary (N.38).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_STABILITY_H
#define MODEL_STABILITY_H

#include "base/types.h"

struct stability {
  idx k, seeds; /* atoms; other seeds, at least 1 */
  /* [seeds][k] cosine of each atom and its pair in the fit of that seed (N.22p) */
  float *cosine;
  float *best;    /* [k] the stability of the atom: its largest cosine over the seeds */
  gidx *density;  /* [k] rows whose support has the atom; NULL: not known */
  real pw_mcc;    /* mean over the seeds, as the next four are */
  real low, high; /* shares of pairs above PAIRS_LOW and PAIRS_HIGH */
  /* PW-MCC of the quarters of atoms with the largest and the smallest density, or NaN */
  real frequent, rare;
  real found_low, found_high; /* shares of atoms whose stability is above the same bounds */
};

/* Set s->best from s->cosine. */
void stability_best(struct stability *s);
/* Set the other members from cosine, best and density.  order[k] and match[k] are work space. */
void stability_count(struct stability *s, idx *order, idx *match);

#endif
