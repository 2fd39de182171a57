/* SPDX-License-Identifier: BSD-3-Clause
 * The strongest rows of every atom (N.23).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The order is strict and total over the rows of an atom, so lists of parts of the rows, merged in
 * any order, are those of the whole. */
#ifndef MODEL_TOP_H
#define MODEL_TOP_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_TOP_ROWS = 1024 };

/* Lists of r rows for each of k atoms, strongest first; where an atom has fewer, row is -1 and code
 * is 0. */
struct top_rows {
  idx k, r;
  gidx *row;   /* [k][r] */
  float *code; /* [k][r] */
};
int top_init(struct top_rows *t, struct arena *arena, idx k, idx r);

/* Does code a in a row come before code b in another?  The larger |code| does, of equal ones the
 * lower row. */
int top_before(float a, gidx row_a, float b, gidx row_b);

/* An atom has this code in a row that its list lacks; a code of 0 is none. */
void top_add(struct top_rows *t, idx atom, gidx row, float code);

#endif
