/* SPDX-License-Identifier: BSD-3-Clause
 * The strongest rows of every atom (N.23).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The order is strict and total over the rows of an atom.  So the lists of different parts of the
 * rows can be merged in any order; the result is the list of all rows. */
#ifndef MODEL_TOP_H
#define MODEL_TOP_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_TOP_ROWS = 1024 };

/* Lists of r rows for each of k atoms, strongest first; if an atom has fewer, row is -1 and code is
 * 0. */
struct top_rows {
  idx k, r;
  gidx *row;   /* [k][r] */
  float *code; /* [k][r] */
};
int top_init(struct top_rows *t, struct arena *arena, idx k, idx r);

/* Does code a in row_a come before code b in row_b?  The larger |code| comes first, of equal ones
 * the lower row. */
int top_before(float a, gidx row_a, float b, gidx row_b);

/* Add a row, which is not yet in the atom's list, and the atom's code in it.  A code of 0 is
 * ignored. */
void top_add(struct top_rows *t, idx atom, gidx row, float code);

#endif
