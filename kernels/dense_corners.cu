/* SPDX-License-Identifier: BSD-3-Clause
 * dense_corners: copies the squares on the diagonal of a factor to their places in the matrix.
 *
 * grid    one panel per block
 * block   any number of threads, one-dimensional
 *
 * The argument `first` is not read. */
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
