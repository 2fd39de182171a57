/* SPDX-License-Identifier: BSD-3-Clause
 * train_scale: values times a factor.
 *
 * grid    any number of blocks
 * block   TRAIN_THREADS
 * shared  none */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_scale(const __grid_constant__ struct train_scale_args t)
{
  long long step = (long long)gridDim.x * TRAIN_THREADS;
  for (long long i = (long long)blockIdx.x * TRAIN_THREADS + threadIdx.x; i < t.count; i += step)
    t.values[i] = __fmul_rn(t.factor, t.values[i]);
}
