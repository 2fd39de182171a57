/* SPDX-License-Identifier: BSD-3-Clause
 * train_mask: zeroes the scores of atoms that are not dead.  With are_signed it also zeroes those
 * scores of dead atoms that are not positive.
 *
 * grid    (ceil(k / TRAIN_THREADS), rows, at most TRAIN_BLOCKS at a time)
 * block   TRAIN_THREADS
 * shared  none */
#include "train_types.h"

extern "C" __global__ void __launch_bounds__(TRAIN_THREADS)
    train_mask(const __grid_constant__ struct train_mask_args t)
{
  int a = blockIdx.x * TRAIN_THREADS + threadIdx.x;
  int is_dead = a < t.k && t.is_dead[a];
  if (a >= t.k || (is_dead && !t.are_signed)) return;
  for (long long row = blockIdx.y; row < t.n; row += gridDim.y) {
    float *value = &t.values[row * t.stride + a];
    *value = is_dead && *value > 0 ? *value : 0;
  }
}
