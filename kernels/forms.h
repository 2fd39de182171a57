/* SPDX-License-Identifier: BSD-3-Clause
 * The compiled forms of the kernels, and sizes that launchers and kernels share.  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes types.h alone. */
#ifndef FORMS_H
#define FORMS_H

#include "types.h"

#ifdef __CUDACC__
#define HOST_DEVICE static constexpr __host__ __device__ inline
#else
#define HOST_DEVICE static inline
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

/* bulk: compute capability 9.0 or newer, and MAX_ROUTE_SHARED bytes of shared memory per block. */
HOST_DEVICE struct route_form route_form_of(int bulk, int d, int top_k)
{
  struct route_form f = {bulk, d > 1, 64, 8, bulk ? 32 : 16, 2};
  while (f.capacity < 2 * top_k) f.capacity *= 2;
  /* Frames with long lists leave too few registers for 16 atoms per thread. */
  if (bulk && !(f.frames && f.capacity > 256)) f.atoms_thread = 16;
  return f;
}

HOST_DEVICE int route_threads(int bulk)
{
  return ROUTE_WARPS * WARP + (bulk ? 128 : 0);
}

HOST_DEVICE int route_tile_atoms(int atoms_thread)
{
  return 16 * atoms_thread;
}

/* Dynamic shared memory of a block: stages, scores of 16 rows per warp, thresholds and lengths of
 * lists, barriers. */
HOST_DEVICE int route_shared_bytes(int atoms_thread, int columns, int stages)
{
  int stage = columns * (ROUTE_ROWS + 16 * atoms_thread) * 4;
  int scores = ROUTE_WARPS * 8 * atoms_thread * WARP * 4;
  return stages * stage + scores + 2 * ROUTE_ROWS * 4 + 2 * 8 * stages;
}
enum { MAX_ROUTE_SHARED = 2 * 32 * (128 + 256) * 4 + 8 * 8 * 16 * 32 * 4 + 1024 + 32 };

HOST_DEVICE int packed_columns(int p)
{
  return (p + ROUTE_COLUMN_STEP - 1) / ROUTE_COLUMN_STEP * ROUTE_COLUMN_STEP;
}

/* Pairs of a row tile and an atom tile are divided into equal ranges, one per block.
 * Returns the block that has a pair. */
HOST_DEVICE int route_block_of(long long pair, long long pairs, int blocks)
{
  return (int)(((pair + 1) * blocks - 1) / pairs);
}

/* The number of blocks that have pairs of a row tile, and so of lists ("parts") of each of its
 * rows. */
HOST_DEVICE int route_parts_of(int row_tile, int row_tiles, int atom_tiles, int blocks)
{
  long long pairs = (long long)row_tiles * atom_tiles, first = (long long)row_tile * atom_tiles;
  return route_block_of(first + atom_tiles - 1, pairs, blocks) -
         route_block_of(first, pairs, blocks) + 1;
}

/* Codes: the vectors of a row are divided into chunks of 32.  The rows of the factor for chunk q
 * are panel q, which has columns 0 .. 32 q + 31, of WARP reals each. */
enum {
  CODES_WARPS = 8,        /* the most warps of a block */
  CODES_SLICE = 16,       /* columns of the vectors at a time */
  CODES_STRIDE = 20,      /* floats between vectors in a slice: lanes have no bank conflict */
  CODES_PITCH = WARP + 2, /* reals between columns of a tile in shared memory */
  CODES_SPAN = 128        /* columns of the residual at a time */
};

HOST_DEVICE int codes_chunks(int vectors)
{
  return (vectors + WARP - 1) / WARP;
}

HOST_DEVICE int codes_warps(int max_vectors)
{
  int chunks = codes_chunks(max_vectors);
  return chunks < CODES_WARPS ? chunks : CODES_WARPS;
}

HOST_DEVICE int codes_panel_start(int q)
{
  return WARP * WARP / 2 * q * (q + 1);
}

/* Bytes of a row's state: panels of the factor, panels without rho if rho > 0, y, norms, kept
 * bits. */
HOST_DEVICE long long codes_state_bytes(int max_vectors, double rho)
{
  int chunks = codes_chunks(max_vectors);
  long long reals = codes_panel_start(chunks) * (rho > 0 ? 2LL : 1LL) + 2 * chunks * WARP;
  return (reals * 8 + chunks * 4LL + 15) / 16 * 16;
}

/* The same for nonnegative codes.  The Gram matrix takes the place of the factor.  If there are
 * several chunks, panels for work follow at the end. */
HOST_DEVICE long long nonnegative_state_bytes(int max_vectors)
{
  int chunks = codes_chunks(max_vectors);
  return codes_state_bytes(max_vectors, 0) + (chunks > 1 ? codes_panel_start(chunks) * 8LL : 0);
}

/* The number of slices in shared memory at a time. */
HOST_DEVICE int codes_stages(int warps)
{
  return warps == 1 ? 4 : 3;
}

/* Shared memory of slices: in each slice the vectors of one chunk per warp, then the row; then the
 * indices of the vectors. */
HOST_DEVICE int codes_slices_bytes(int warps)
{
  return codes_stages(warps) * (warps * WARP + 1) * CODES_STRIDE * 4 + warps * WARP * 4;
}

/* Dynamic shared memory of a block of gram: slices, indices of the vectors. */
HOST_DEVICE int gram_shared_bytes(int max_vectors)
{
  return codes_slices_bytes(codes_warps(max_vectors)) + codes_chunks(max_vectors) * WARP * 4;
}

/* Dynamic shared memory of codes: for each vector a real, an index and a kept bit; then a tile of
 * the factor.  If there is a single chunk and rho > 0, there are two tiles: with rho, and without.
 * For a single chunk, slices share the memory of the tiles. */
HOST_DEVICE int codes_vectors_bytes(int chunks)
{
  return (chunks * (WARP * (8 + 4) + 4) + 15) / 16 * 16;
}
HOST_DEVICE int codes_shared_bytes(int max_vectors, double rho)
{
  int chunks = codes_chunks(max_vectors), tile = WARP * CODES_PITCH * 8;
  int tiles = chunks == 1 && rho > 0 ? 2 * tile : tile, slices = codes_slices_bytes(1);
  return codes_vectors_bytes(chunks) + (chunks == 1 && tiles < slices ? slices : tiles);
}

/* Dynamic shared memory of nonnegative: for each vector what codes has, and four more reals and
 * three more bits; then a tile.  For a single chunk, slices share the memory of the tile. */
HOST_DEVICE int nonnegative_vectors_bytes(int chunks)
{
  return codes_vectors_bytes(chunks) + (chunks * (WARP * 4 * 8 + 3 * 4) + 15) / 16 * 16;
}
HOST_DEVICE int nonnegative_shared_bytes(int max_vectors)
{
  int chunks = codes_chunks(max_vectors), tile = WARP * CODES_PITCH * 8;
  int slices = codes_slices_bytes(1);
  return nonnegative_vectors_bytes(chunks) + (chunks == 1 && tile < slices ? slices : tile);
}

/* Normal equations: entries are sorted by chunks of rows, with a counter for each chunk and
 * atom. */
enum {
  NORMAL_COUNTERS = 1 << 24,
  NORMAL_CHUNKS = 4096,
  NORMAL_CHUNK_ROWS = 16,  /* the fewest rows of a chunk */
  NORMAL_ENTRIES = 1 << 25 /* entries that are sorted at a time, unless one row has more */
};

HOST_DEVICE int normal_chunk_rows(int n, int k)
{
  int chunks = NORMAL_COUNTERS / k < NORMAL_CHUNKS ? NORMAL_COUNTERS / k : NORMAL_CHUNKS;
  int rows = (int)((n + (chunks > 0 ? chunks : 1) - 1LL) / (chunks > 0 ? chunks : 1));
  return rows < NORMAL_CHUNK_ROWS ? NORMAL_CHUNK_ROWS : rows;
}

HOST_DEVICE int normal_chunks(int n, int k)
{
  int rows = normal_chunk_rows(n, k);
  return (int)((n + rows - 1LL) / rows);
}

/* The largest number of rows whose entries are sorted at a time. */
HOST_DEVICE int normal_rows(int n, int s)
{
  int most = s > 0 && s < NORMAL_ENTRIES ? NORMAL_ENTRIES / s : 1;
  return n < most ? n : most;
}

/* Own rows and atoms, as in struct normal_own of device/normal.h.  normal_own_atom: the atom of an
 * own row.  normal_own_row: the own row of an atom; -1 if it has none. */
HOST_DEVICE int normal_own_atom(int row, int first, int step)
{
  return first + row / DESCEND_ATOMS * step + row % DESCEND_ATOMS;
}

HOST_DEVICE int normal_own_row(int atom, int first, int count, int step)
{
  int from = atom - first, row = from / step * DESCEND_ATOMS + from % step;
  return from < 0 || from % step >= DESCEND_ATOMS || row >= count ? -1 : row;
}

/* Bytes of the workspace in which the entries of n rows are sorted: entries, counters, starts. */
HOST_DEVICE long long normal_work_bytes(int n, int s, int k)
{
  return (long long)n * s * 8 + ((long long)normal_chunks(n, k) * k + k + 1) * 4;
}

/* normal_descend: atoms and their columns of the Gram matrix are staged, DESCEND_DEPTH atoms at a
 * time.  Pitches, in reals, are such that no two lanes of half a warp have a bank conflict, except
 * in the square. */
enum {
  DESCEND_DEPTH = 32,
  DESCEND_GRAM_PITCH = DESCEND_DEPTH + 4,
  DESCEND_ATOM_PITCH = DESCEND_COLUMNS + 4,
  DESCEND_SQUARE_PITCH = DESCEND_ATOMS + 2,
  DESCEND_STAGE = DESCEND_ATOMS * DESCEND_GRAM_PITCH + DESCEND_DEPTH * DESCEND_ATOM_PITCH
};

HOST_DEVICE int descend_stages(int large)
{
  return large ? 5 : 2;
}

/* Stages, and for the block of atoms itself: its square of the Gram matrix, its atoms, its sums. */
HOST_DEVICE int descend_shared_bytes(int stages)
{
  int own = DESCEND_ATOMS * (DESCEND_SQUARE_PITCH + 2 * DESCEND_ATOM_PITCH);
  return (stages * DESCEND_STAGE + own) * 8;
}

#endif
