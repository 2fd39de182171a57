/* SPDX-License-Identifier: BSD-3-Clause
 * train_pack: copies the entries of rows, one row after another, without gaps.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS: one warp per row
 * shared  none */
#include "train_types.h"
#include "types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_pack(const __grid_constant__ struct train_pack_args t)
{
  enum { WARPS = TRAIN_THREADS / WARP };
  int lane = threadIdx.x % WARP;
  long long step = (long long)gridDim.x * WARPS;
  for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / WARP; row <= t.n;
       row += step) {
    int at = t.start[row], count = row < t.n ? t.start[row + 1] - at : 0;
    if (lane == 0) t.wide[row] = t.base + at;
    for (int i = lane; i < count; i += WARP) {
      t.packed_index[at + i] = t.index[row * t.most + i];
      t.packed_value[at + i] = t.value[row * t.most + i];
    }
  }
}
