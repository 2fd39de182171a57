/* SPDX-License-Identifier: BSD-3-Clause
 * The result for an atom in a sweep of a refit.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ATOM_STEP_H
#define MODEL_ATOM_STEP_H

#include "base/det_pair.h"
#include "base/types.h"

/* For a dead atom all members are 0, except log_det, which is NaN. */
struct atom_step {
  idx accepted;
  idx status; /* of the last solve, enum arrow_status */
  idx retries;
  /* ridge of the rows in the last solve; the ridge of the border is proportional to it (N.15) */
  real ridge;
  struct det_pair pair; /* of the determinant of the last solve */
  real log_det;
};

#endif
