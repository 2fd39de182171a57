/* SPDX-License-Identifier: BSD-3-Clause
 * normal_clear: zeroes the rows and columns of the Gram matrix, and the rows of the target, of
 * atoms that are forgotten.
 *
 * grid    k: one atom each
 * block   any number of threads
 * shared  none */
#include "forms.h"

extern "C" __global__ void normal_clear(const __grid_constant__ struct normal_clear_args a)
{
  long long atom = blockIdx.x, row = normal_own_row(blockIdx.x, a.first, a.count, a.step);
  int all = a.forget[atom];
  for (int b = threadIdx.x; row >= 0 && b < a.k; b += blockDim.x)
    if (all || a.forget[b]) a.gram[row * a.k + b] = 0;
  for (int c = threadIdx.x; all && c < a.columns; c += blockDim.x)
    a.target[atom * a.columns + c] = 0;
}
