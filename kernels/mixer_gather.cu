/* SPDX-License-Identifier: BSD-3-Clause
 * mixer_gather: copies states or taps, from slots to scratch or back.
 *
 * grid    moves times blocks of a move
 * block   COPY_THREADS */
#include "launches.h"
#include "mixer_types.h"

extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    mixer_gather(const __grid_constant__ struct mixer_gather_args a)
{
  launches_wait();
  struct mixer_move move = a.moves[blockIdx.x / a.blocks];
  long long first = (long long)(blockIdx.x % a.blocks) * COPY_FLOATS;
  const float *from = a.from + move.from * a.floats;
  float *to = a.to + move.to * a.floats;
  if (a.floats % MIXER_QUAD == 0) {
#pragma unroll
    for (int i = 0; i < COPY_FLOATS; i += COPY_THREADS * MIXER_QUAD) {
      long long at = first + i + threadIdx.x * MIXER_QUAD;
      if (at < a.floats) *(float4 *)(to + at) = *(const float4 *)(from + at);
    }
    return;
  }
  for (long long at = first + threadIdx.x; at < min(first + COPY_FLOATS, a.floats);
       at += COPY_THREADS)
    to[at] = from[at];
}
