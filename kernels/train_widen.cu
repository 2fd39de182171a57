/* SPDX-License-Identifier: BSD-3-Clause
 * train_widen: widens the starts of lists to 64 bits, and adds a base to them.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS
 * shared  none */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_widen(const __grid_constant__ struct train_widen_args t)
{
  long long step = (long long)gridDim.x * TRAIN_THREADS;
  for (long long i = (long long)blockIdx.x * TRAIN_THREADS + threadIdx.x; i < t.count; i += step)
    t.wide[i] = t.base + t.narrow[i];
}
