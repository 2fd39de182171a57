/* SPDX-License-Identifier: BSD-3-Clause
 * train_normalize: divides each atom by its norm (N.20), unless the norm is 0 or not finite.
 *
 * grid    ceil(count / TRAIN_VECTORS)
 * block   a warp: one atom per lane
 * shared  static: tiles of atoms
 * sums    a chain of fma in f64 for each atom, ascending columns */
#include "train_vectors.h"

extern "C" __global__ void __launch_bounds__(WARP)
    train_normalize(const __grid_constant__ struct train_atoms_args t)
{
  __shared__ struct vector_tile atom[2];
  long long first = (long long)blockIdx.x * TRAIN_VECTORS;
  const struct vectors atoms = {t.vectors, t.count, t.p, t.p};
  double square = 0;
  for (int column = -WARP, now = 1; column < t.p; column += WARP, now ^= 1) {
    if (column + WARP < t.p) {
      tile_order(&atom[now ^ 1], &atoms, first, column + WARP);
      async_commit();
    }
    if (column < 0) continue;
    tiles_wait(column + WARP >= t.p);
    square = tile_dot(&atom[now], &atom[now], square);
    __syncwarp();
  }
  double norm = __dsqrt_rn(square);
  if (norm == 0 || norm - norm != 0) norm = 1;
  for (int column = 0; column < t.p; column += WARP)
    for (int v = 0; v < TRAIN_VECTORS; v += HELD) {
      float x[HELD];
      column_read(t.vectors, first + v, t.count, column, t.p, x);
#pragma unroll
      for (int i = 0; i < HELD; i++) {
        double its = __shfl_sync(0xffffffffu, norm, v + i);
        long long at = position_of(first + v + i, t.count, column, t.p);
        if (at >= 0) t.vectors[at] = (float)__ddiv_rn((double)x[i], its);
      }
    }
}
