/* SPDX-License-Identifier: BSD-3-Clause
 * Exact scores (N.1) of a tile of rows and atoms, in registers.  A warp has 16 rows; a thread has 8
 * rows x ATOMS_THREAD atoms.  Atom j of a thread is atom 64 (j / 4) + 4 (lane % 16) + j % 4 of the
 * tile.
 *
 * -D options as in stages.h */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "stages.h"

static __device__ inline void column_load(float *x, float *y, const float *rows, const float *atoms)
{
#pragma unroll
  for (int i = 0; i < 8; i += 4) *(float4 *)(x + i) = *(const float4 *)(rows + i);
#pragma unroll
  for (int i = 0; i < ATOMS_THREAD; i += 4) *(float4 *)(y + i) = *(const float4 *)(atoms + 16 * i);
}

/* z <- z + the products of the columns of the current stage.  Called after stage_wait(). */
static __device__ inline void stage_add(const struct shared *s, const struct walk *w,
                                        float z[8][ATOMS_THREAD], int columns)
{
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const float *rows = s->stage[w->serial % STAGES] + warp * 16 + lane / 16 * 8;
  const float *atoms = s->stage[w->serial % STAGES] + COLUMNS * ROUTE_ROWS + lane % 16 * 4;
#pragma unroll 1
  for (int c = 0; c < columns; c += ROUTE_COLUMN_STEP) {
#pragma unroll
    for (int u = 0; u < ROUTE_COLUMN_STEP; u++, rows += ROUTE_ROWS, atoms += ATOMS) {
      float x[8], y[ATOMS_THREAD];
      column_load(x, y, rows, atoms);
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < ATOMS_THREAD; j++) z[i][j] = __fadd_rn(z[i][j], __fmul_rn(x[i], y[j]));
    }
  }
}

/* z <- the sum of the squares of the frame's scores so far.  scratch keeps this sum until the next
 * vector of the frame. */
static __device__ inline void gates_add(float z[8][ATOMS_THREAD], float *scratch, int vector,
                                        int last)
{
  scratch += threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < ATOMS_THREAD; j++) {
      float *gate = scratch + (i * ATOMS_THREAD + j) * WARP;
      z[i][j] = __fmul_rn(z[i][j], z[i][j]);
      if (vector > 0) z[i][j] = __fadd_rn(*gate, z[i][j]);
      if (!last) *gate = z[i][j];
    }
}

/* z <- the scores of the next pair of tiles; for frames, the gates. */
static __device__ inline void tile_scores(const struct route_args *a, struct shared *s,
                                          struct walk *w, float z[8][ATOMS_THREAD])
{
  int vectors = FRAMES ? a->d : 1;
  for (int vector = 0; vector < vectors; vector++) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < ATOMS_THREAD; j++) z[i][j] = 0;
#pragma unroll 1
    for (int column = 0; column < a->columns; column += COLUMNS) {
      int left = a->columns - column;
      stage_wait(s, w);
      stage_add(s, w, z, left < COLUMNS ? left : COLUMNS);
      stage_done(a, s, w);
    }
    if (FRAMES) gates_add(z, s->scratch[threadIdx.x / WARP], vector, vector == vectors - 1);
  }
}

#endif
