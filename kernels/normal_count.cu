/* SPDX-License-Identifier: BSD-3-Clause
 * normal_count: the number of entries of each atom in each chunk of rows.  If codes are given,
 * entries with code 0 are not counted.
 *
 * grid    any number of blocks
 * block   any number of threads
 * shared  none
 *
 * The launcher zeroes counts first. */
#include "types.h"

extern "C" __global__ void normal_count(const __grid_constant__ struct normal_args a)
{
  long long entries = (long long)a.n * a.s, threads = (long long)gridDim.x * blockDim.x;
  for (long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x; e < entries; e += threads) {
    if (a.codes && a.codes[e] == 0) continue;
    int chunk = (int)(e / a.s) / a.chunk_rows;
    atomicAdd(&a.counts[(long long)chunk * a.k + a.slots[e]], 1);
  }
}
