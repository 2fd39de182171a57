/* SPDX-License-Identifier: BSD-3-Clause
 * Stages of route: pieces of both packed operands in shared memory.
 *
 * -D BULK, ATOMS_THREAD, COLUMNS, STAGES, FRAMES as in route.cu.
 * This file includes stages_bulk.h or stages_copy.h, which both define
 *   stages_enter()  returns 1 to a warp that computes, and 0 to a producer warp.  One thread of the
 *                   producers makes all copies before it returns.  Without producers, all threads
 *                   start the first copies
 *   stage_wait()    waits for the current stage
 *   stage_done()    is called when this warp has read the current stage; goes on to the next one */
#ifndef STAGES_H
#define STAGES_H

#include "barriers.h"
#include "forms.h"

enum {
  ATOMS = 16 * ATOMS_THREAD,
  STAGE_FLOATS = COLUMNS * (ROUTE_ROWS + ATOMS),
  SCRATCH = 8 * ATOMS_THREAD * WARP /* floats per warp: [8 rows][ATOMS_THREAD][lane] */
};

struct shared {
  float stage[STAGES][STAGE_FLOATS]; /* [COLUMNS][ROUTE_ROWS], then [COLUMNS][ATOMS] */
  float scratch[ROUTE_WARPS][SCRATCH];
  unsigned long long full[STAGES], empty[STAGES]; /* barriers of bulk copies (barriers.h) */
  int threshold[ROUTE_ROWS], length[ROUTE_ROWS];  /* of the lists of the rows */
};

/* The position of a warp in the sequence of stages of its block. */
struct walk {
  int first, pairs; /* first pair of tiles of the block; number of its pairs */
  int stages;       /* stages of a pair: vectors x pieces of COLUMNS columns */
  int serial;       /* number of the current stage, from 0 */
};

/* The packed operands of one stage. */
struct piece {
  const float *rows, *atoms;
  int columns;
};

static __device__ inline struct piece piece_of(const struct route_args *a, const struct walk *w,
                                               int serial)
{
  int pair = w->first + serial / w->stages, stage = serial % w->stages;
  int row_tile = pair / a->atom_tiles, atom_tile = pair % a->atom_tiles, vector = 0;
  if (FRAMES) {
    int pieces = w->stages / a->d;
    vector = stage / pieces;
    stage %= pieces;
  }
  int column = stage * COLUMNS, left = a->columns - column;
  long long row = (long long)row_tile * a->columns + column;
  long long atom = ((long long)atom_tile * (FRAMES ? a->d : 1) + vector) * a->columns + column;
  struct piece p = {a->rows + row * ROUTE_ROWS, a->atoms + atom * ATOMS,
                    left < COLUMNS ? left : COLUMNS};
  return p;
}

static __device__ inline struct walk cursor_of(const struct route_args *a)
{
  long long pairs = (long long)a->row_tiles * a->atom_tiles;
  int pieces = (a->columns + COLUMNS - 1) / COLUMNS, first = (int)(pairs * blockIdx.x / a->blocks);
  int end = (int)(pairs * (blockIdx.x + 1) / a->blocks);
  struct walk w = {first, end - first, (FRAMES ? a->d : 1) * pieces, 0};
  return w;
}

#if BULK
#include "stages_bulk.h"
#else
#include "stages_copy.h"
#endif

#endif
