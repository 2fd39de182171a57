/* SPDX-License-Identifier: BSD-3-Clause
 * Ridges of an arrow system: what is added to those of its rows and of its border, each in the unit
 * of its own block (N.14, N.15).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_RIDGES_H
#define MODEL_RIDGES_H

#include "base/types.h"

struct arrow_system;

/* One number of the unit of the diagonal blocks H_i, and one of the unit of C. */
struct ridges {
  real t, b;
};

/* The sizes of the blocks, which are their units.  Every entry is finite. */
struct ridges ridges_units(const struct arrow_system *s);

/* Additions to both ridges, from one to that of the rows, or of the border. */
struct ridges ridges_of_row(struct ridges unit, real bump);
struct ridges ridges_of_border(struct ridges unit, real bump);

/* Those of a system whose step made the objective rise. */
struct ridges ridges_of_rise(struct ridges unit);

/* Ten times as much. */
struct ridges ridges_next(struct ridges addition);

/* Base + addition; the base alone where nothing is added. */
struct ridges ridges_add(struct ridges base, struct ridges addition);

int ridges_are_zero(struct ridges addition);
int ridges_are_finite(struct ridges addition);

#endif
