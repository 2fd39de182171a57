/* SPDX-License-Identifier: BSD-3-Clause
 * How well the atoms of a dictionary find features that are known (N.32).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RECOVERY_H
#define MODEL_RECOVERY_H

#include "base/memory.h"
#include "base/types.h"

/* Counts over rows; sums of whole numbers, so that their order does not matter. */
struct recovery_counts {
  idx k, f;           /* atoms, features */
  const idx *nearest; /* [k] the feature with the largest |cosine|; borrowed */
  gidx *fires;        /* [k] rows in which the atom fires: its code is not 0 */
  gidx *active;       /* [f] rows in which the feature does */
  gidx *both;         /* [k] rows in which the atom and its feature do */
  gidx rows, entries; /* so far, and features that fired in them */
  gidx *stamp;        /* [f] 1 + the last row in which the feature fired */
};

/* Means over all atoms; one that never fires, or never with its feature, has precision, recall and
 * F1 0. */
struct recovery {
  real f1, precision, recall;
  real uniqueness; /* distinct nearest features over k */
  real true_l0;    /* features that fire in a row, a mean */
};

/* Allocate; nearest is set by the caller. */
int recovery_init(struct recovery_counts *r, idx k, idx f, struct arena *arena);

/* Count a row with so many codes and features, which fire where their magnitude is above 0. */
void recovery_count(struct recovery_counts *r, gidx codes, const idx *atoms, const float *code,
                    gidx features, const idx *feature, const float *magnitude);

/* stamp is used up. */
void recovery_finish(const struct recovery_counts *r, struct recovery *out);

#endif
