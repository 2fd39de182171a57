/* SPDX-License-Identifier: BSD-3-Clause
 * triad_dots: for each entry of a list the product of two rows (N.42).
 *
 * grid    lists, at most TRIAD_MAX_LISTS at a time
 * block   TRIAD_THREADS: an entry each
 * shared  none
 * sums    a chain of fma for each entry, ascending columns */
#include "triad_types.h"

extern "C" __global__ void __launch_bounds__(TRIAD_THREADS)
    triad_dots(const __grid_constant__ struct triad_list_args t)
{
  for (long long i = blockIdx.x; i < t.count; i += gridDim.x) {
    const float *row = t.rows + i * t.width;
    for (long long e = t.start[i] + threadIdx.x; e < t.start[i + 1]; e += TRIAD_THREADS) {
      const float *with = t.matrix + (long long)t.index[e] * t.width;
      float acc = 0;
      for (int c = 0; c < t.width; c++) acc = fmaf(row[c], with[c], acc);
      t.out[e] = acc;
    }
  }
}
