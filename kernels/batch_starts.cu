/* SPDX-License-Identifier: BSD-3-Clause
 * batch_starts: finds how many of the scores that equal the cut are entries in each row, and where
 * the entries of each row begin (N.46).  The first `ties` such scores are entries, in the order of
 * rows.
 *
 * grid    1
 * block   BATCH_SCAN_THREADS: a run of rows per thread
 * shared  static: the sum of each warp */
#include "batch_types.h"
#include "warp.h"

/* Returns the sum of `own` over all threads before this one.  *all <- the sum over all threads.
 * warps[WARP] is in shared memory. */
static __device__ inline long long block_scan(long long own, long long *warps, long long *all)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  long long sum = own, before = 0;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    long long other = __shfl_up_sync(FULL_WARP, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == WARP - 1) warps[warp] = sum;
  __syncthreads();
  *all = 0;
  for (int w = 0; w < BATCH_SCAN_THREADS / WARP; w++) {
    if (w == warp) before = *all;
    *all += warps[w];
  }
  __syncthreads();
  return before + sum - own;
}

extern "C" __global__ void __launch_bounds__(BATCH_SCAN_THREADS)
    batch_starts(const __grid_constant__ struct batch_cut_args a)
{
  __shared__ long long warps[BATCH_SCAN_THREADS / WARP];
  long long each = (a.n + BATCH_SCAN_THREADS - 1) / BATCH_SCAN_THREADS, all, own = 0;
  long long first = threadIdx.x * each, end = first + each < a.n ? first + each : a.n;
  for (long long i = first; i < end; i++) own += a.equal[i];
  long long left = a.ties - block_scan(own, warps, &all);
  own = 0;
  for (long long i = first; i < end; i++) {
    int kept = left <= 0 ? 0 : a.equal[i] < left ? a.equal[i] : (int)left;
    left -= kept;
    own += a.above[i] + kept;
    a.equal[i] = kept;
  }
  long long at = block_scan(own, warps, &all);
  for (long long i = first; i < end; i++) {
    a.start[i] = at;
    at += a.above[i] + a.equal[i];
  }
  if (threadIdx.x == 0) a.start[a.n] = all;
}
