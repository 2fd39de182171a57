/* SPDX-License-Identifier: BSD-3-Clause
 * nested_starts: where the entries of each block of atoms begin in a row (N.47).
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one row and block of atoms per thread
 * shared  none */
#include "batch_types.h"

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    nested_starts(const __grid_constant__ struct nested_starts_args a)
{
  long long all = a.n * a.blocks, step = (long long)gridDim.x * BATCH_THREADS;
  for (long long i = (long long)blockIdx.x * BATCH_THREADS + threadIdx.x; i <= all; i += step) {
    long long row = i / a.blocks, at = a.entries[row];
    int block = (int)(i - row * a.blocks);
    if (block > 0) { /* entries ascend: find the first one that is not below the block */
      long long end = a.entries[row + 1];
      while (at < end) {
        long long middle = at + (end - at) / 2;
        if (a.index[middle] < a.end[block - 1])
          at = middle + 1;
        else
          end = middle;
      }
    }
    a.start[i] = at;
  }
}
