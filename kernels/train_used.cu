/* SPDX-License-Identifier: BSD-3-Clause
 * train_used: marks the atoms that have an entry.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS
 * shared  none
 *
 * The launcher zeroes `used` first; all threads that write an element write the same value. */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_used(const __grid_constant__ struct train_idle_args t)
{
  long long end = t.start[t.n], step = (long long)gridDim.x * TRAIN_THREADS;
  for (long long e = (long long)blockIdx.x * TRAIN_THREADS + threadIdx.x; e < end; e += step)
    t.used[t.index[e]] = 1;
}
