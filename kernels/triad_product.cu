/* SPDX-License-Identifier: BSD-3-Clause
 * triad_product: products forward and back (N.40).
 *
 * grid    (ceil(columns / TRIAD_PRODUCT_TILE), ceil(rows / TRIAD_PRODUCT_TILE))
 * block   (TRIAD_SIDE, TRIAD_SIDE)
 * shared  two stages, static
 * sums    a chain of fma for each output, ascending depths, from start */
enum { QUADS = 2 };
#include "triad_tile.h"

/* Two on a multiprocessor hide each other's loads; elsewhere that would spill registers. */
#if __CUDA_ARCH__ == 900
enum { BESIDE = 2 };
#else
enum { BESIDE = 1 };
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_product(const __grid_constant__ struct triad_args t)
{
  __shared__ __align__(16) struct stage stages[2];
  int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  float acc[4 * QUADS][4 * QUADS];
#pragma unroll
  for (int j = 0; j < 4 * QUADS; j++) {
    int c = column + place_of(threadIdx.x, j);
    float start = t.start && c < t.columns ? t.start[c] : 0;
#pragma unroll
    for (int i = 0; i < 4 * QUADS; i++) acc[i][j] = start;
  }
  tile_add(&t, stages, row, column, 0, t.depth, acc);
#pragma unroll
  for (int i = 0; i < 4 * QUADS; i++)
#pragma unroll
    for (int j = 0; j < 4 * QUADS; j++) {
      int r = row + place_of(threadIdx.y, i), c = column + place_of(threadIdx.x, j);
      if (r >= t.rows || c >= t.columns) continue;
      t.c[r * t.c_row + c] = !t.only_positive ? settled(acc[i][j]) : acc[i][j] > 0 ? acc[i][j] : 0;
    }
}
