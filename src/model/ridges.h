/* SPDX-License-Identifier: BSD-3-Clause
 * Ridges of an arrow system: additions to the diagonals of its rows' blocks, and to the diagonal of
 * its border block.  The unit of an addition is the size of the blocks to which it is added (N.14,
 * N.15).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RIDGES_H
#define MODEL_RIDGES_H

#include "base/types.h"

struct arrow_system;

/* t: for the diagonal blocks H_i of rows; b: for the border block C. */
struct ridges {
  real t, b;
};

/* The sizes of the blocks, which are their units.  Every entry of the system must be finite. */
struct ridges ridges_units(const struct arrow_system *s);

/* Additions to both ridges, from the suggested bump of a row's block, or from the suggested bump of
 * the border. */
struct ridges ridges_of_row(struct ridges unit, real bump);
struct ridges ridges_of_border(struct ridges unit, real bump);

/* Additions for a system whose step made the objective rise. */
struct ridges ridges_of_rise(struct ridges unit);

/* Ten times the addition. */
struct ridges ridges_next(struct ridges addition);

/* Base + addition; exactly the base if nothing is added. */
struct ridges ridges_add(struct ridges base, struct ridges addition);

int ridges_are_zero(struct ridges addition);
int ridges_are_finite(struct ridges addition);

#endif
