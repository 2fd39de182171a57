/* SPDX-License-Identifier: BSD-3-Clause
 * batch_rows: counts for each row the scores above the cut of the batch, and those that equal it
 * (N.46).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one warp per row
 * shared  none
 *
 * If the cut is 0, no score counts as equal to it. */
#include "batch_key.h"
#include "batch_types.h"

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    batch_rows(const __grid_constant__ struct batch_cut_args a)
{
  enum { WARPS = BATCH_THREADS / WARP };
  int lane = threadIdx.x % WARP;
  long long step = (long long)gridDim.x * WARPS;
  for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / WARP; row < a.n; row += step) {
    const float *scores = a.scores + row * a.stride;
    int above = 0, equal = 0;
#pragma unroll 4
    for (int i = lane; i < a.stride; i += WARP) {
      int key = batch_key(scores[i]);
      above += key > a.key;
      equal += key == a.key;
    }
    above = __reduce_add_sync(FULL_WARP, above);
    equal = __reduce_add_sync(FULL_WARP, equal);
    if (lane) continue;
    a.above[row] = above;
    a.equal[row] = a.key > 0 ? equal : 0;
  }
}
