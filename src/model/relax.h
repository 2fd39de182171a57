/* SPDX-License-Identifier: BSD-3-Clause
 * The last part of a sweep of a fit: atoms that have moved are moved further, and rounded (N.21).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RELAX_H
#define MODEL_RELAX_H

#include "base/types.h"

/* frame <- frame + further (frame - table), orthonormalised; frame[d][p] is the moved frame, and
 * table[d][p] the frame before the sweep.  further is omega - 1, where omega is the relaxation
 * (Young 1954); 0: the frame stays.  If the vectors of the result are linearly dependent, frame <-
 * table. */
void frame_relax(real *frame, const float *table, idx d, idx p, real further);

/* Round the frame to f32; frame and table <- the rounded frame.  Returns the chain of squares of
 * the difference between the frame and the old table. */
real frame_round(real *frame, float *table, idx d, idx p);

#endif
