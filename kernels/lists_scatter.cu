/* SPDX-License-Identifier: BSD-3-Clause
 * lists_scatter: writes lists into columns of supports, and their values into scores.
 *
 * grid    any number of blocks
 * block   any number of threads, which take entries in turn
 * shared  none
 * sums    none; the root of a gate is rounded once, and its product with a power of two once more
 *         if the product is subnormal */
#include "types.h"

static __device__ inline float score_of(float gate, int power)
{
  double unit = __hiloint2double((1023 - power) << 20, 0);
  return __double2float_rn(__dmul_rn((double)__fsqrt_rn(gate), unit));
}

extern "C" __global__ void lists_scatter(const __grid_constant__ struct lists_scatter_args a)
{
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.entries; i += step) {
    struct candidate c = a.lists[i];
    long long to = i / a.top_k * a.s + a.at + i % a.top_k;
    a.atoms[to] = c.atom;
    a.score[to] = a.gates ? score_of(c.value, a.power ? a.power[i / a.top_k] : 0) : c.value;
  }
}
