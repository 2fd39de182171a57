/* SPDX-License-Identifier: BSD-3-Clause
 * How well the atoms of a dictionary find known features (N.32).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RECOVERY_H
#define MODEL_RECOVERY_H

#include "base/memory.h"
#include "base/types.h"

/* Counts over rows: integers, so that the order of rows does not matter. */
struct recovery_counts {
  idx k, f;           /* atoms, features */
  const idx *nearest; /* [k] the feature with the largest |cosine|; borrowed */
  gidx *fires;        /* [k] rows in which the atom fires: its code is not 0 */
  gidx *active;       /* [f] rows in which the feature fires */
  gidx *both;         /* [k] rows in which the atom and its feature both fire */
  gidx rows, entries; /* rows so far; sum over these rows of the number of firing features */
  gidx *stamp;        /* [f] 1 + the last row in which the feature fired */
};

/* Means over all atoms.  An atom that never fires, or never together with its feature, has
 * precision, recall and F1 0. */
struct recovery {
  real f1, precision, recall;
  real uniqueness; /* distinct nearest features over k */
  real true_l0;    /* mean number of features that fire in a row */
};

/* Allocate the arrays; the caller sets nearest. */
int recovery_init(struct recovery_counts *r, idx k, idx f, struct arena *arena);

/* Count a row with codes code[codes] on atoms[codes], and features feature[features].  A feature
 * fires if its magnitude is above 0. */
void recovery_count(struct recovery_counts *r, gidx codes, const idx *atoms, const float *code,
                    gidx features, const idx *feature, const float *magnitude);

/* Compute the means; stamp is overwritten. */
void recovery_finish(const struct recovery_counts *r, struct recovery *out);

#endif
