/* SPDX-License-Identifier: BSD-3-Clause
 * nested_errors: computes the errors of the widths of a row (N.47).  They replace its partial
 * reconstructions, each from one block of atoms.  For the last width it stores the sum of all
 * blocks, from which train_errors computes the error.
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one number of a row per thread
 * shared  none
 * sums    over blocks, ascending, in f32 */
#include "batch_types.h"

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    nested_errors(const __grid_constant__ struct nested_errors_args a)
{
  long long all = a.n * a.p, step = (long long)gridDim.x * BATCH_THREADS;
  for (long long i = (long long)blockIdx.x * BATCH_THREADS + threadIdx.x; i < all; i += step) {
    long long row = i / a.p;
    float *z = a.errors + row * a.blocks * a.p + (i - row * a.p);
    float x = a.x[i], y = z[0];
    for (int b = 0; b < a.blocks; b++, z += a.p) {
      if (b > 0) y = __fadd_rn(z[0], y);
      z[0] = b < a.blocks - 1 ? __fsub_rn(y, x) : y;
    }
  }
}
