/* SPDX-License-Identifier: BSD-3-Clause
 * train_scatter: sorts the entries of atoms first .. first + atoms - 1 by atom, then by row.
 *
 * grid    ceil(chunks / NORMAL_WARPS)
 * block   (WARP, NORMAL_WARPS): one warp per chunk of rows
 * shared  none
 *
 * The atoms of a row differ, so its lanes use different counters. */
#include "train_types.h"
#include "types.h"

extern "C" __global__ void __launch_bounds__(WARP *NORMAL_WARPS)
    train_scatter(const __grid_constant__ struct train_transpose_args t)
{
  int chunk = blockIdx.x * NORMAL_WARPS + threadIdx.y;
  if (chunk >= t.chunks) return;
  int *counts = t.counts + (long long)chunk * t.atoms;
  int first = chunk * t.chunk_rows, end = first + t.chunk_rows < t.n ? first + t.chunk_rows : t.n;
  for (int row = first; row < end; row++) {
    for (long long e = t.start[row] + threadIdx.x; e < t.start[row + 1]; e += WARP) {
      long long atom = t.index[e] - t.first;
      if (atom < 0 || atom >= t.atoms) continue;
      int to = t.begin[atom] + counts[atom]++;
      t.row[to] = row;
      t.turned_value[to] = t.value[e];
      t.turned_slope[to] = t.slope[e];
    }
    __syncwarp();
  }
}
