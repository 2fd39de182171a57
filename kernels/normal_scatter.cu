/* SPDX-License-Identifier: BSD-3-Clause
 * normal_scatter: sorts entries, or their numbers, by atom, then by row.
 *
 * grid    ceil(chunks / NORMAL_WARPS)
 * block   (WARP, NORMAL_WARPS): one warp per chunk of rows
 * shared  none
 *
 * The atoms of a row differ, so its lanes use different counters, and their order does not
 * matter. */
#include "types.h"

extern "C" __global__ void __launch_bounds__(WARP *NORMAL_WARPS)
    normal_scatter(const __grid_constant__ struct normal_args a)
{
  int chunk = blockIdx.x * NORMAL_WARPS + threadIdx.y;
  if (chunk >= a.chunks) return;
  int *counts = a.counts + (long long)chunk * a.k;
  int first = chunk * a.chunk_rows, end = first + a.chunk_rows < a.n ? first + a.chunk_rows : a.n;
  for (int row = first; row < end; row++) {
    for (int j = threadIdx.x; j < a.s; j += WARP) {
      long long e = (long long)row * a.s + j;
      struct normal_entry entry = {row, a.codes ? a.codes[e] : 1};
      int atom = a.slots[e];
      if (entry.code == 0) continue;
      int before = counts[atom], at = a.start[atom] + before;
      counts[atom] = before + 1;
      if (a.numbers)
        a.numbers[at] = e;
      else
        a.entries[at] = entry;
    }
    __syncwarp();
  }
}
