/* SPDX-License-Identifier: BSD-3-Clause
 * What became of an atom in a sweep of a refit.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ATOM_STEP_H
#define MODEL_ATOM_STEP_H

#include "base/det_pair.h"
#include "base/types.h"

/* All 0 but log_det NaN for a dead atom. */
struct atom_step {
  idx accepted;
  idx status; /* of the last solve, enum arrow_status */
  idx retries;
  real ridge;           /* of the rows in the last solve; the border's is in proportion (N.15) */
  struct det_pair pair; /* of the determinant of the last solve */
  real log_det;
};

#endif
