/* SPDX-License-Identifier: BSD-3-Clause
 * train_normalize: atoms divided by their norms (N.20), but for one whose norm is 0 or not finite.
 *
 * grid    ceil(count / TRAIN_VECTORS)
 * block   a warp: an atom a lane
 * shared  static: a tile of atoms
 * sums    a chain of fma in f64 for each atom, ascending columns */
#include "train_vectors.h"

extern "C" __global__ void __launch_bounds__(WARP)
    train_normalize(const __grid_constant__ struct train_atoms_args t)
{
  __shared__ struct vector_tile atom;
  long long first = (long long)blockIdx.x * TRAIN_VECTORS;
  double square = 0;
  for (int column = 0; column < t.p; column += WARP) {
    tile_read(&atom, t.vectors, first, t.count, column, t.p);
    __syncwarp();
    square = tile_dot(&atom, &atom, square);
    __syncwarp();
  }
  double norm = __dsqrt_rn(square);
  if (norm == 0 || norm - norm != 0) norm = 1;
  for (int column = 0; column < t.p; column += WARP) {
    tile_read(&atom, t.vectors, first, t.count, column, t.p);
#pragma unroll 8
    for (int v = 0; v < TRAIN_VECTORS; v++) {
      double its = __shfl_sync(0xffffffffu, norm, v);
      long long at = place_of(first + v, t.count, column, t.p);
      if (at >= 0) t.vectors[at] = (float)__ddiv_rn((double)atom.at[v][threadIdx.x], its);
    }
  }
}
