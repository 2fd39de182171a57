/* SPDX-License-Identifier: BSD-3-Clause
 * train_tangent: subtracts from gradients their parts along their unit atoms (N.44).
 *
 * grid    ceil(count / TRAIN_VECTORS)
 * block   a warp: one atom per lane
 * shared  static: tiles of gradients and atoms
 * sums    a chain of fma in f64 for each atom, ascending columns */
#include "train_vectors.h"

extern "C" __global__ void __launch_bounds__(WARP)
    train_tangent(const __grid_constant__ struct train_atoms_args t)
{
  __shared__ struct vector_tile gradient[2], atom[2];
  long long first = (long long)blockIdx.x * TRAIN_VECTORS;
  const struct vectors gradients = {t.vectors, t.count, t.p, t.p};
  const struct vectors atoms = {t.atoms, t.count, t.p, t.p};
  double along = 0;
  for (int column = -WARP, now = 1; column < t.p; column += WARP, now ^= 1) {
    if (column + WARP < t.p) {
      tile_order(&gradient[now ^ 1], &gradients, first, column + WARP);
      tile_order(&atom[now ^ 1], &atoms, first, column + WARP);
      async_commit();
    }
    if (column < 0) continue;
    tiles_wait(column + WARP >= t.p);
    along = tile_dot(&gradient[now], &atom[now], along);
    __syncwarp();
  }
  for (int column = 0; column < t.p; column += WARP)
    for (int v = 0; v < TRAIN_VECTORS; v += HELD) {
      float g[HELD], u[HELD];
      column_read(t.vectors, first + v, t.count, column, t.p, g);
      column_read(t.atoms, first + v, t.count, column, t.p, u);
#pragma unroll
      for (int i = 0; i < HELD; i++) {
        double its = -__shfl_sync(0xffffffffu, along, v + i);
        long long at = position_of(first + v + i, t.count, column, t.p);
        if (at >= 0) t.vectors[at] = (float)fma(its, (double)u[i], (double)g[i]);
      }
    }
}
