/* SPDX-License-Identifier: BSD-3-Clause
 * pick: items of equal size, one after another, from where they are named.
 *
 * grid    any number of blocks; block b has items b, b + blocks and so on
 * block   any number of threads, which share an item's words */
#include "types.h"

extern "C" __global__ void pick(const __grid_constant__ struct pick_args a)
{
  for (long long i = blockIdx.x; i < a.count; i += gridDim.x) {
    const unsigned *in = a.in + (a.names ? a.names[i] : i) * a.words;
    for (long long w = threadIdx.x; w < a.words; w += blockDim.x) a.out[i * a.words + w] = in[w];
  }
}
