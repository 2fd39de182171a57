/* SPDX-License-Identifier: BSD-3-Clause
 * dense_unit: moves columns of a factor to `work`, and puts unit vectors in their place; lower
 * triangle only.
 *
 * grid    (ceil((n - first) / blockDim.x), width): rows, a column
 * block   any number of threads, one-dimensional */
#include "dense_types.h"

extern "C" __global__ void dense_unit(const __grid_constant__ struct unit_args a)
{
  int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y;
  double *at = a.s + a.first + row + (a.first + column) * a.stride;
  if (row < column || row >= a.n - a.first) return;
  a.work[row + column * a.work_stride] = *at;
  *at = row == column;
}
