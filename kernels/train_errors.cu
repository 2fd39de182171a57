/* SPDX-License-Identifier: BSD-3-Clause
 * train_errors: errors of the reconstructions of rows, and the sums of squares of errors and rows.
 *
 * grid    ceil(n / TRAIN_VECTORS)
 * block   a warp: one row per lane
 * shared  static: tiles of errors and rows
 * sums    a chain of fma in f64 for each row, ascending columns */
#include "train_vectors.h"

/* Make the errors of these columns, in memory and in the tile.  Add them to `left`, if given. */
static __device__ inline void tile_subtract(const struct train_errors_args *t,
                                            struct vector_tile *error, const struct vector_tile *x,
                                            long long first, int column)
{
#pragma unroll 8
  for (int v = 0; v < TRAIN_VECTORS; v++) {
    long long at = position_of(first + v, t->n, column, t->p);
    float e = __fsub_rn(error->at[v][threadIdx.x], x->at[v][threadIdx.x]);
    error->at[v][threadIdx.x] = e;
    if (at < 0) continue;
    t->error[at + (first + v) * (t->stride - t->p)] = e;
    if (t->left) t->left[at] = __fadd_rn(t->left[at], e);
  }
}

extern "C" __global__ void __launch_bounds__(WARP)
    train_errors(const __grid_constant__ struct train_errors_args t)
{
  __shared__ struct vector_tile error[2], x[2];
  long long first = (long long)blockIdx.x * TRAIN_VECTORS, row = first + threadIdx.x;
  const struct vectors errors = {t.error, t.n, t.stride, t.p}, rows = {t.x, t.n, t.p, t.p};
  double of_error = 0, of_row = 0;
  for (int column = -WARP, now = 1; column < t.p; column += WARP, now ^= 1) {
    if (column + WARP < t.p) {
      tile_order(&error[now ^ 1], &errors, first, column + WARP);
      tile_order(&x[now ^ 1], &rows, first, column + WARP);
      async_commit();
    }
    if (column < 0) continue;
    tiles_wait(column + WARP >= t.p);
    tile_subtract(&t, &error[now], &x[now], first, column);
    __syncwarp();
    of_error = tile_dot(&error[now], &error[now], of_error);
    of_row = tile_dot(&x[now], &x[now], of_row);
    __syncwarp();
  }
  if (row >= t.n) return;
  t.squares[2 * row] = of_error;
  t.squares[2 * row + 1] = of_row;
}
