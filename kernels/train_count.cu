/* SPDX-License-Identifier: BSD-3-Clause
 * train_count: the number of entries of each atom in each chunk of rows.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS: one warp per row
 * shared  none
 *
 * The launcher zeroes counts first. */
#include "train_types.h"
#include "types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_count(const __grid_constant__ struct train_transpose_args t)
{
  enum { WARPS = TRAIN_THREADS / WARP };
  int step = gridDim.x * WARPS;
  for (int row = blockIdx.x * WARPS + threadIdx.x / WARP; row < t.n; row += step) {
    int *counts = t.counts + (long long)(row / t.chunk_rows) * t.atoms;
    for (long long e = t.start[row] + threadIdx.x % WARP; e < t.start[row + 1]; e += WARP) {
      long long atom = t.index[e] - t.first;
      if (atom >= 0 && atom < t.atoms) atomicAdd(&counts[atom], 1);
    }
  }
}
