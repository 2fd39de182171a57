/* SPDX-License-Identifier: BSD-3-Clause
 * batch_compact: the entries of rows, row by row, in ascending order of atoms (N.46).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one warp per row
 * shared  none */
#include "batch_key.h"
#include "batch_types.h"

enum { COMPACT_UNROLLED = 4 };

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    batch_compact(const __grid_constant__ struct batch_cut_args a)
{
  enum { WARPS = BATCH_THREADS / WARP };
  int lane = threadIdx.x % WARP;
  long long step = (long long)gridDim.x * WARPS;
  if (a.start[a.n] > a.room) return;
  for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / WARP; row < a.n; row += step) {
    const float *scores = a.scores + row * a.stride;
    long long to = a.start[row];
    int ties = a.equal[row];
    for (int first = 0; first < a.stride; first += COMPACT_UNROLLED * WARP) {
      float score[COMPACT_UNROLLED];
#pragma unroll
      for (int u = 0; u < COMPACT_UNROLLED; u++) score[u] = scores[first + u * WARP + lane];
#pragma unroll
      for (int u = 0; u < COMPACT_UNROLLED; u++) {
        int key = batch_key(score[u]);
        unsigned tied = __ballot_sync(FULL_WARP, key == a.key);
        int kept = key > a.key || (key == a.key && lanes_before(tied) < ties);
        unsigned mask = __ballot_sync(FULL_WARP, kept);
        if (kept) {
          a.index[to + lanes_before(mask)] = first + u * WARP + lane;
          a.value[to + lanes_before(mask)] = score[u];
        }
        to += __popc(mask);
        ties = ties > __popc(tied) ? ties - __popc(tied) : 0;
      }
    }
  }
}
