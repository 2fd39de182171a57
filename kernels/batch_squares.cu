/* SPDX-License-Identifier: BSD-3-Clause
 * batch_squares: sums of squares of rows (N.49).
 *
 * grid    ceil(n / TRAIN_VECTORS)
 * block   a warp: one row per lane
 * shared  static: tiles of rows
 * sums    a chain of fma in f64 for each row, ascending columns */
#include "batch_types.h"
#include "train_vectors.h"

extern "C" __global__ void __launch_bounds__(WARP)
    batch_squares(const __grid_constant__ struct batch_raise_args a)
{
  __shared__ struct vector_tile tiles[2];
  const struct vectors rows = {a.rows, a.n, a.p, a.p};
  long long first = (long long)blockIdx.x * TRAIN_VECTORS, row = first + threadIdx.x;
  double sum = 0;
  for (int column = -WARP, now = 1; column < a.p; column += WARP, now ^= 1) {
    if (column + WARP < a.p) {
      tile_order(&tiles[now ^ 1], &rows, first, column + WARP);
      async_commit();
    }
    if (column < 0) continue;
    tiles_wait(column + WARP >= a.p);
    sum = tile_dot(&tiles[now], &tiles[now], sum);
    __syncwarp();
  }
  if (row < a.n) a.squares[row] = sum;
}
