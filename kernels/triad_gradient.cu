/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to what is there.
 *
 * grid    (ceil(columns / TILE_COLUMNS), ceil(rows / TILE_ROWS))
 * block   triad_threads()
 * shared  triad_shared_bytes(): two stages, then a sum in f64 for each output
 * sums    chunks of TRIAD_CHUNK_ROWS depths, a chain of fma each, are added in f64, ascending */
#include "triad_tile.h"

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_gradient(const __grid_constant__ struct triad_args t)
{
  extern __shared__ __align__(16) char memory[];
  struct stage *stages = (struct stage *)memory;
  double *sums = (double *)(stages + 2) + threadIdx.x; /* a thread's own, THREADS apart */
  int row = blockIdx.y * TILE_ROWS, column = blockIdx.x * TILE_COLUMNS;
  struct place at = place_own();
#pragma unroll 1
  for (int first = 0; first < t.depth; first += TRIAD_CHUNK_ROWS) {
    float acc[ROWS_OWN][COLUMNS_OWN] = {0};
    int end = t.depth - first > TRIAD_CHUNK_ROWS ? first + TRIAD_CHUNK_ROWS : t.depth;
    tile_add(&t, stages, at, row, column, first, end, acc);
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS_OWN; j++) {
        double *sum = sums + (i * COLUMNS_OWN + j) * THREADS;
        *sum = (first ? *sum : 0) + (double)acc[i][j];
      }
  }
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS_OWN; j++) {
      int r = row + row_at(at, i), c = column + column_at(at, j);
      if (r >= t.rows || c >= t.columns) continue;
      float *to = t.c + r * t.c_row + c;
      *to = settled(*to + (float)sums[(i * COLUMNS_OWN + j) * THREADS]);
    }
}
