/* SPDX-License-Identifier: BSD-3-Clause
 * train_tangent: gradients lose what is along their unit atoms (N.44).
 *
 * grid    ceil(count / TRAIN_VECTORS)
 * block   a warp: an atom a lane
 * shared  static: tiles of gradients and atoms
 * sums    a chain of fma in f64 for each atom, ascending columns */
#include "train_vectors.h"

extern "C" __global__ void __launch_bounds__(WARP)
    train_tangent(const __grid_constant__ struct train_atoms_args t)
{
  __shared__ struct vector_tile gradient, atom;
  long long first = (long long)blockIdx.x * TRAIN_VECTORS;
  double along = 0;
  for (int column = 0; column < t.p; column += WARP) {
    tile_read(&gradient, t.vectors, first, t.count, column, t.p);
    tile_read(&atom, t.atoms, first, t.count, column, t.p);
    __syncwarp();
    along = tile_dot(&gradient, &atom, along);
    __syncwarp();
  }
  for (int column = 0; column < t.p; column += WARP) {
    tile_read(&gradient, t.vectors, first, t.count, column, t.p);
    tile_read(&atom, t.atoms, first, t.count, column, t.p);
#pragma unroll 8
    for (int v = 0; v < TRAIN_VECTORS; v++) {
      double its = -__shfl_sync(0xffffffffu, along, v);
      long long at = place_of(first + v, t.count, column, t.p);
      double g = gradient.at[v][threadIdx.x], u = atom.at[v][threadIdx.x];
      if (at >= 0) t.vectors[at] = (float)fma(its, u, g);
    }
  }
}
