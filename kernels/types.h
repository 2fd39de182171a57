/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels agree on: shapes, layouts, arguments.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes nothing.
 *
 * Packed operands stand as [tile][vector][column][item], so that a stage of a kernel is one piece of
 * memory; items beyond the last and columns beyond p are zeros. */
#ifndef TYPES_H
#define TYPES_H

#ifndef STEP
#define STEP 4
#endif
enum {
  WARP = 32,
  ROUTE_COLUMN_STEP = STEP /* packed columns are a multiple of this */
};

/* As struct entry of model/route.h: a score (frames: a gate) and its atom, -1 for none. */
struct candidate {
  float value;
  int atom;
};

struct pack_args {
  const float *in; /* [count][d][p] */
  float *out;      /* [tiles][d][columns][width] */
  int count;       /* items; as many as `padded` are written, zeros from count on */
  int padded;
  int first; /* item of out that in[0] becomes */
  int d, p, columns, width;
  int copies; /* of each value side by side, 1 or 2 */
};

struct route_args {
  const float *rows;   /* [row_tiles][columns][rows a tile] */
  const float *atoms;  /* [atom_tiles][d][columns][atoms a tile] */
  const int *atom_of;  /* [slots] global numbers */
  const int *excluded; /* [n][excluded_count] slots, -1: not on this device */
  int excluded_count;
  int n, slots, columns, d, take;
  int row_tiles, atom_tiles;
  int tile_rows;           /* rows a tile */
  int teams;               /* lists a block and row */
  int blocks;              /* of the route kernel */
  int parts;               /* lists a row, at most */
  int ascending;           /* atom_of rises */
  struct candidate *lists; /* [rows of all tiles][parts][CAPACITY] */
  int *counts;             /* [rows of all tiles][parts], zeros before */
  unsigned long long *bad; /* lowest row 2^32 + atom of a score that is not finite */
  struct candidate *out;   /* [n][take] of the merge, in order, (0, -1) where atoms ran out */
};

#endif
