/* SPDX-License-Identifier: BSD-3-Clause
 * triad_sparse: sparse rows times a matrix, or gradients where a list is a column (N.42).
 *
 * grid    (lists, at most TRIAD_MAX_LISTS at a time; ceil(width / TRIAD_THREADS))
 * block   TRIAD_THREADS: a column each
 * shared  none
 * sums    a chain of fma over the entries of a list; of a gradient one for each chunk of rows,
 *         added in f64 */
#include "triad_types.h"

extern "C" __global__ void __launch_bounds__(TRIAD_THREADS)
    triad_sparse(const __grid_constant__ struct triad_list_args t)
{
  int c = blockIdx.y * TRIAD_THREADS + threadIdx.x;
  if (c >= t.width) return;
  for (long long i = blockIdx.x; i < t.count; i += gridDim.x) {
    float *to = t.out + i * t.width + c, acc = 0;
    double sum = 0;
    long long e = t.start[i], end = t.start[i + 1];
    int chunk = -1;
    for (; e < end; e++) {
      int row = t.index[e], its = t.is_gradient ? row / TRIAD_CHUNK_ROWS : 0;
      if (t.is_gradient && its != chunk) {
        sum += (double)acc;
        acc = 0;
        chunk = its;
      }
      acc = fmaf(t.value[e], t.matrix[(long long)row * t.width + c], acc);
    }
    sum += (double)acc;
    *to = t.is_gradient ? *to + (float)sum : acc;
  }
}
