/* SPDX-License-Identifier: BSD-3-Clause
 * gather: copies the items whose indices are in `names`, one after another.  All items have the
 * same size.
 *
 * grid    any number of blocks; block b has items b, b + blocks and so on
 * block   any number of threads, which divide the words of an item
 * shared  none */
#include "types.h"

extern "C" __global__ void gather(const __grid_constant__ struct gather_args a)
{
  for (long long i = blockIdx.x; i < a.count; i += gridDim.x) {
    const unsigned *in = a.in + (a.names ? a.names[i] : i) * a.words;
    for (long long w = threadIdx.x; w < a.words; w += blockDim.x) a.out[i * a.words + w] = in[w];
  }
}
