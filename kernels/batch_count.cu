/* SPDX-License-Identifier: BSD-3-Clause
 * batch_count: counts the scores of a batch by the next digit of their keys, to find the cut
 * (N.46).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one warp per row
 * shared  static: counts of the block
 *
 * Counts are integers, so their order does not matter. */
#include "batch_key.h"
#include "batch_types.h"

enum { COUNT_UNROLLED = 4 };

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    batch_count(const __grid_constant__ struct batch_count_args a)
{
  enum { WARPS = BATCH_THREADS / WARP };
  __shared__ int bins[BATCH_MOST_BINS];
  int lane = threadIdx.x % WARP, mask = (1 << (a.known - a.shift)) - 1;
  for (int i = threadIdx.x; i < BATCH_MOST_BINS; i += BATCH_THREADS) bins[i] = 0;
  __syncthreads();
  long long step = (long long)gridDim.x * WARPS;
  for (long long row = (long long)blockIdx.x * WARPS + threadIdx.x / WARP; row < a.n; row += step) {
    const float *scores = a.scores + row * a.stride;
    for (int first = 0; first < a.stride; first += COUNT_UNROLLED * WARP) {
      int key[COUNT_UNROLLED];
#pragma unroll
      for (int u = 0; u < COUNT_UNROLLED; u++) key[u] = batch_key(scores[first + u * WARP + lane]);
#pragma unroll
      for (int u = 0; u < COUNT_UNROLLED; u++)
        if (key[u] > 0 && (long long)key[u] >> a.known == a.prefix)
          atomicAdd(&bins[key[u] >> a.shift & mask], 1);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < BATCH_MOST_BINS; i += BATCH_THREADS)
    if (bins[i]) atomicAdd(&a.counts[i], (unsigned long long)bins[i]);
}
