/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to what is there.
 *
 * grid    (ceil(columns / TRIAD_GRADIENT_TILE), ceil(rows / TRIAD_GRADIENT_TILE))
 * block   (TRIAD_SIDE, TRIAD_SIDE)
 * shared  two stages, static
 * sums    chunks of TRIAD_CHUNK_ROWS depths, a chain of fma each, are added in f64, ascending */
enum { QUADS = 1 };
#include "triad_tile.h"

extern "C" __global__ void __launch_bounds__(THREADS)
    triad_gradient(const __grid_constant__ struct triad_args t)
{
  __shared__ __align__(16) struct stage stages[2];
  int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  double sum[4 * QUADS][4 * QUADS] = {0};
#pragma unroll 1
  for (int first = 0; first < t.depth; first += TRIAD_CHUNK_ROWS) {
    float acc[4 * QUADS][4 * QUADS] = {0};
    int end = t.depth - first > TRIAD_CHUNK_ROWS ? first + TRIAD_CHUNK_ROWS : t.depth;
    tile_add(&t, stages, row, column, first, end, acc);
#pragma unroll
    for (int i = 0; i < 4 * QUADS; i++)
#pragma unroll
      for (int j = 0; j < 4 * QUADS; j++) sum[i][j] += (double)acc[i][j];
  }
#pragma unroll
  for (int i = 0; i < 4 * QUADS; i++)
#pragma unroll
    for (int j = 0; j < 4 * QUADS; j++) {
      int r = row + place_of(threadIdx.y, i), c = column + place_of(threadIdx.x, j);
      if (r >= t.rows || c >= t.columns) continue;
      float *to = t.c + r * t.c_row + c;
      *to = settled(*to + (float)sum[i][j]);
    }
}
