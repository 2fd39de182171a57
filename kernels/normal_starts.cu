/* SPDX-License-Identifier: BSD-3-Clause
 * normal_starts: the counts of atoms become the indices of their first entries.
 *
 * grid    1
 * block   1024: a run of atoms per thread
 * shared  static: the count of each warp */
#include "warp.h"

static __device__ inline int lanes_scan(int value)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int step = 1; step < WARP; step *= 2) {
    int other = __shfl_up_sync(FULL_WARP, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

extern "C" __global__ void __launch_bounds__(1024)
    normal_starts(const __grid_constant__ struct normal_args a)
{
  __shared__ int warps[WARP];
  int thread = threadIdx.x, per = (a.k + 1023) / 1024, own = 0;
  long long first = (long long)thread * per, end = first + per < a.k ? first + per : a.k;
  for (long long i = first; i < end; i++) own += a.start[i];
  int before = lanes_scan(own);
  if (thread % WARP == WARP - 1) warps[thread / WARP] = before;
  __syncthreads();
  before -= own;
  for (int w = 0; w < thread / WARP; w++) before += warps[w];
  for (long long i = first; i < end; i++) {
    int count = a.start[i];
    a.start[i] = before;
    before += count;
  }
  if (thread == 1023) a.start[a.k] = before;
}
