/* SPDX-License-Identifier: BSD-3-Clause
 * triad_fold: adds the chunks of a gradient that triad_product has summed (N.41) to the output.
 *
 * grid    blocks; block b has rows b, b + blocks, ..
 * block   TRIAD_TRANSPOSE_THREADS
 * shared  none
 * sums    over chunks in f64, ascending; the sum is rounded once, and added to the output in f32 */
#include "triad_types.h"

extern "C" __global__ void __launch_bounds__(TRIAD_TRANSPOSE_THREADS)
    triad_fold(const __grid_constant__ struct triad_fold_args a)
{
  long long part = (long long)a.rows * a.columns;
  for (int row = blockIdx.x; row < a.rows; row += gridDim.x)
    for (int column = threadIdx.x; column < a.columns; column += TRIAD_TRANSPOSE_THREADS) {
      const float *from = a.parts + (long long)row * a.columns + column;
      float *to = a.c + row * a.c_row + column;
      double sum = 0;
      for (int chunk = 0; chunk < a.chunks; chunk++) sum += (double)from[chunk * part];
      float all = *to + (float)sum;
      *to = all == all ? all : __int_as_float(0x7fc00000);
    }
}
