/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_fetch: copies systems from page-locked arrays of the host, so that no thread of the host
 * has to pack them.
 *
 * grid    x: at most ARROW_FETCH_SYSTEMS blocks, which take turns with the systems; y: blocks that
 *         share the numbers of one
 * block   ARROW_FETCH_THREADS
 * shared  none
 *
 * A number comes over the bus, so what counts is how many are on their way: a thread asks for
 * several before it stores one. */
#include "arrow_types.h"

enum { AHEAD = 4 };

/* The numbers of an array, by the threads of all blocks of a system. */
static __device__ inline void array_fetch(double *to, const double *from, long long count)
{
  long long threads = (long long)gridDim.y * blockDim.x;
  long long e = (long long)blockIdx.y * blockDim.x + threadIdx.x;
  for (; e + (AHEAD - 1) * threads < count; e += AHEAD * threads) {
    double x[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) x[i] = from[e + i * threads];
#pragma unroll
    for (int i = 0; i < AHEAD; i++) to[e + i * threads] = x[i];
  }
  for (; e < count; e += threads) to[e] = from[e];
}

extern "C" __global__ void arrow_fetch(const __grid_constant__ struct arrow_args a)
{
  for (int i = blockIdx.x; i < a.count; i += gridDim.x) {
    struct arrow_source s = a.sources[i];
    double *to = (double *)a.in + a.atoms[i].in;
    long long n = a.atoms[i].n, d = s.d, k = s.k;
    array_fetch(to, s.b, n * d * k);
    array_fetch(to += n * d * k, s.h, n * d * d);
    array_fetch(to += n * d * d, s.g, n * d);
    array_fetch(to += n * d, s.c, k * k);
    array_fetch(to += k * k, s.g_b, k);
  }
}
