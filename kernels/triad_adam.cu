/* SPDX-License-Identifier: BSD-3-Clause
 * triad_adam: a step of Adam (N.44), each operation rounded.
 *
 * grid    any number of blocks
 * block   TRIAD_THREADS
 * shared  none */
#include "triad_types.h"

extern "C" __global__ void __launch_bounds__(TRIAD_THREADS)
    triad_adam(const __grid_constant__ struct triad_adam_args t)
{
  long long step = (long long)gridDim.x * TRIAD_THREADS;
  for (long long i = (long long)blockIdx.x * TRIAD_THREADS + threadIdx.x; i < t.count; i += step) {
    float g = t.g[i];
    float m = __fadd_rn(__fmul_rn(0.9f, t.m[i]), __fmul_rn(0.1f, g));
    float v = __fadd_rn(__fmul_rn(0.999f, t.v[i]), __fmul_rn(__fmul_rn(0.001f, g), g));
    float size = __fadd_rn(__fsqrt_rn(__fmul_rn(v, t.correction)), 1e-8f);
    t.m[i] = m;
    t.v[i] = v;
    t.w[i] = __fsub_rn(t.w[i], __fdiv_rn(__fmul_rn(t.rate, m), size));
  }
}
