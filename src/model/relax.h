/* SPDX-License-Identifier: BSD-3-Clause
 * What a sweep of a fit does with an atom that has moved (N.21).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RELAX_H
#define MODEL_RELAX_H

#include "base/types.h"

/* Move frame[d][p] further in the direction in which it came from table[d][p], by `further` times
 * that distance; further is omega - 1 (Young 1954), 0: the frame stays.  If the new frame has no
 * basis, it becomes table. */
void frame_relax(real *frame, const float *table, idx d, idx p, real further);

/* Round the frame to f32; frame and table <- the rounded frame.  Returns the chain of squares of
 * the difference between the frame and the old table. */
real frame_round(real *frame, float *table, idx d, idx p);

#endif
