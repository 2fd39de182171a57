/* SPDX-License-Identifier: BSD-3-Clause
 * nested_suffix: replaces the errors of the widths of each row with the gradients of its blocks
 * (N.47).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one number of a row per thread
 * shared  none
 * sums    over blocks, from the last one to the first, in f32 */
#include "batch_types.h"

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    nested_suffix(const __grid_constant__ struct nested_errors_args a)
{
  long long all = a.n * a.p, step = (long long)gridDim.x * BATCH_THREADS;
  for (long long i = (long long)blockIdx.x * BATCH_THREADS + threadIdx.x; i < all; i += step) {
    long long row = i / a.p;
    float *e = a.errors + (row + 1) * a.blocks * a.p - a.p + (i - row * a.p);
    float sum = e[0];
    for (int b = a.blocks - 2; b >= 0; b--) {
      e -= a.p;
      sum = __fadd_rn(e[0], sum);
      e[0] = sum;
    }
  }
}
