/* SPDX-License-Identifier: BSD-3-Clause
 * Reference of a refit on fixed supports: codes of rows on supports of any length (N.24k), and the
 * update of all atoms with these codes (N.20k).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_KEPT_H
#define MODEL_KEPT_H

#include "base/types.h"

struct kept_model {
  idx n, k, p;
  const float *x;    /* [n][p] */
  const gidx *start; /* [n + 1] the first entry of each row */
  const idx *atoms;  /* [entries] the supports */
  int nonnegative;
  real rho;
};

/* codes[entries] <- the codes for the atoms table[k][p], rounded.  ERR_MEMORY. */
int kept_codes_reference(const struct kept_model *m, const float *table, float *codes);

/* Update the atoms table[k][p] for codes[entries], in `passes` passes, and round them.
 * ERR_MEMORY. */
int kept_atoms_reference(const struct kept_model *m, const float *codes, idx passes, float *table);

#endif
