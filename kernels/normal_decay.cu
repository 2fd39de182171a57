/* SPDX-License-Identifier: BSD-3-Clause
 * normal_decay: numbers times beta (N.20).
 *
 * grid    any number of blocks
 * block   any number of threads
 * shared  none */
#include "types.h"

extern "C" __global__ void normal_decay(const __grid_constant__ struct normal_decay_args a)
{
  long long threads = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += threads)
    a.values[i] *= a.beta;
}
