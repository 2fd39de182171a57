/* SPDX-License-Identifier: BSD-3-Clause
 * train_mask: scores of atoms that are not dead become 0.
 *
 * grid    (ceil(k / TRAIN_THREADS), rows, at most TRAIN_BLOCKS at a time)
 * block   TRAIN_THREADS
 * shared  none */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_mask(const __grid_constant__ struct train_mask_args t)
{
  int a = blockIdx.x * TRAIN_THREADS + threadIdx.x;
  if (a >= t.k || t.is_dead[a]) return;
  for (long long row = blockIdx.y; row < t.n; row += gridDim.y) t.values[row * t.stride + a] = 0;
}
