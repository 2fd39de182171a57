/* SPDX-License-Identifier: BSD-3-Clause
 * train_offset: subtracts the bias before the encoder from rows (N.48).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS
 * shared  none */
#include "batch_types.h"

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    train_offset(const __grid_constant__ struct train_offset_args a)
{
  long long all = a.n * a.p, step = (long long)gridDim.x * BATCH_THREADS;
  for (long long i = (long long)blockIdx.x * BATCH_THREADS + threadIdx.x; i < all; i += step)
    a.x[i] = __fsub_rn(a.x[i], a.offset[i % a.p]);
}
