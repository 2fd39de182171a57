/* SPDX-License-Identifier: BSD-3-Clause
 * dense_corners: the squares on the diagonal of a factor come to their place.
 *
 * grid    a panel a block
 * block   any number of threads, one row
 * first of the arguments is not read */
#include "dense_types.h"

extern "C" __global__ void dense_corners(const __grid_constant__ struct factor_args a)
{
  int first = blockIdx.x * FACTOR_WIDTH;
  const double *square = a.corners + (long long)first * FACTOR_WIDTH;
  for (int i = threadIdx.x; i < FACTOR_WIDTH * FACTOR_WIDTH; i += blockDim.x) {
    int row = i % FACTOR_WIDTH, column = i / FACTOR_WIDTH;
    if (first + row < a.n && column <= row)
      a.s[first + row + (first + column) * a.stride] = square[i];
  }
}
