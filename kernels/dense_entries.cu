/* SPDX-License-Identifier: BSD-3-Clause
 * dense_entries: entries of S^-1 from the inverse of its factor (N.19).
 *
 * grid    ceil(count / ENTRIES_THREADS)
 * block   ENTRIES_THREADS, one entry each
 * sums    a chain of fma over ascending rows, from +0 */
#include "dense_types.h"

extern "C" __global__ void __launch_bounds__(ENTRIES_THREADS)
    dense_entries(const __grid_constant__ struct entries_args a)
{
  int i = blockIdx.x * ENTRIES_THREADS + threadIdx.x;
  if (i >= a.count) return;
  int first = a.pairs[2 * i], second = a.pairs[2 * i + 1];
  const double *x = a.z + first * a.stride, *y = a.z + second * a.stride;
  double sum = 0;
#pragma unroll 8
  for (int k = first > second ? first : second; k < a.n; k++) sum = fma(x[k], y[k], sum);
  a.out[i] = sum;
}
