/* SPDX-License-Identifier: BSD-3-Clause
 * train_idle: for how many rows each atom has not been used, and which atoms are dead.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS
 * shared  none
 *
 * The launcher zeroes *any; all threads that write it write the same value. */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_idle(const __grid_constant__ struct train_idle_args t)
{
  int step = gridDim.x * TRAIN_THREADS;
  for (int a = blockIdx.x * TRAIN_THREADS + threadIdx.x; a < t.k; a += step) {
    long long idle = t.used[a] ? 0 : t.idle[a] + t.n;
    t.idle[a] = idle;
    t.is_dead[a] = idle >= t.dead_rows;
    if (idle >= t.dead_rows) *t.any = 1;
  }
}
