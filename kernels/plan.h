/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes that launchers choose and kernels rely on.  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes types.h alone. */
#ifndef PLAN_H
#define PLAN_H

#include "types.h"

#ifdef __CUDACC__
#define PLAN static constexpr __host__ __device__ inline
#else
#define PLAN static inline
#endif

/* One compiled form of route.cu; its members are the -D options of the same names. */
struct route_form {
  int bulk;         /* BULK */
  int frames;       /* FRAMES */
  int capacity;     /* CAPACITY */
  int atoms_thread; /* ATOMS_THREAD */
  int columns;      /* COLUMNS */
  int stages;       /* STAGES */
};

/* bulk: capability 9.0 or newer, and ROUTE_SHARED_MOST bytes of shared memory for a block. */
PLAN struct route_form route_form_of(int bulk, int d, int take)
{
  struct route_form f = {bulk, d > 1, 64, 8, bulk ? 32 : 16, 2};
  while (f.capacity < 2 * take) f.capacity *= 2;
  /* Long lists beside gates leave no registers for 16. */
  if (bulk && !(f.frames && f.capacity > 256)) f.atoms_thread = 16;
  return f;
}

PLAN int route_threads(int bulk)
{
  return ROUTE_WARPS * WARP + (bulk ? 128 : 0);
}

PLAN int route_tile_atoms(int atoms_thread)
{
  return 16 * atoms_thread;
}

/* Dynamic shared memory of a block: stages, scores of 16 rows a warp, lists, barriers. */
PLAN int route_shared_bytes(int atoms_thread, int columns, int stages)
{
  int stage = columns * (ROUTE_ROWS + 16 * atoms_thread) * 4;
  int scores = ROUTE_WARPS * 8 * atoms_thread * WARP * 4;
  return stages * stage + scores + 2 * ROUTE_ROWS * 4 + 2 * 8 * stages;
}
enum { ROUTE_SHARED_MOST = 2 * 32 * (128 + 256) * 4 + 8 * 8 * 16 * 32 * 4 + 1024 + 32 };

PLAN int packed_columns(int p)
{
  return (p + ROUTE_COLUMN_STEP - 1) / ROUTE_COLUMN_STEP * ROUTE_COLUMN_STEP;
}

/* Pairs of a row tile and an atom tile are cut in equal ranges, one a block: a pair's block. */
PLAN int route_block_of(long long pair, long long pairs, int blocks)
{
  return (int)(((pair + 1) * blocks - 1) / pairs);
}

/* Blocks, so lists, that share a row tile. */
PLAN int route_parts_of(int row_tile, int row_tiles, int atom_tiles, int blocks)
{
  long long pairs = (long long)row_tiles * atom_tiles, first = (long long)row_tile * atom_tiles;
  return route_block_of(first + atom_tiles - 1, pairs, blocks) -
         route_block_of(first, pairs, blocks) + 1;
}

/* Panel q holds rows 32 q .. 32 q + 31 of a factor by columns 0 .. 32 q + 31, CODES_HEIGHT reals
 * each: the rows, then what belongs to the column itself, b before and y after it is solved. */
enum {
  CODES_HEIGHT = WARP + 1,
  CODES_SLICE = 32,
  CODES_STRIDE = CODES_SLICE + 4,
  CODES_SPAN = 128
};

PLAN long long codes_panel_start(int q)
{
  return (long long)WARP * CODES_HEIGHT * q * (q + 1) / 2;
}

/* A row's state: panels of the factor, those of the rank test if rho > 0, codes, kept sets. */
PLAN long long codes_state_bytes(int vectors_most, double rho)
{
  int panels = (vectors_most + WARP - 1) / WARP;
  long long reals = codes_panel_start(panels) * (rho > 0 ? 2 : 1) + panels * WARP;
  return (reals * 8 + panels * 4LL + 15) / 16 * 16;
}

/* Vectors in a slice: those of a chunk, the row, those of another chunk if there is one. */
PLAN int codes_slice_vectors(int vectors_most)
{
  return 1 + (vectors_most > WARP ? 2 * WARP : WARP);
}

/* Dynamic shared memory of a block, one warp: two slices, the first panel if it is the only one,
 * spans of three arrays. */
PLAN int codes_shared_bytes(int vectors_most)
{
  int panel = vectors_most > WARP ? 0 : WARP * CODES_HEIGHT * 8;
  return 2 * codes_slice_vectors(vectors_most) * CODES_STRIDE * 4 + panel + 3 * CODES_SPAN * 8;
}

#endif
