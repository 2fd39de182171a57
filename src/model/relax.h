/* SPDX-License-Identifier: BSD-3-Clause
 * What a sweep of a fit does with an atom that has moved (N.21).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RELAX_H
#define MODEL_RELAX_H

#include "base/types.h"

/* frame[d][p] goes on the way that it came from table[d][p], `further` times as far again, which is
 * omega - 1 (Young 1954); where it then has no basis it goes back to table.  0: it stays. */
void frame_relax(real *frame, const float *table, idx d, idx p, real further);

/* frame and table <- frame, rounded to f32.  Returns the chain of squares of what the table had
 * less than the frame before that. */
real frame_round(real *frame, float *table, idx d, idx p);

#endif
