/* SPDX-License-Identifier: BSD-3-Clause
 * triad_transpose: transposes an operand that is contiguous along its depth, so that it is
 * contiguous along its lines (N.40).
 *
 * grid    (ceil(depths / WARP), ceil(lines / WARP))
 * block   TRIAD_TRANSPOSE_THREADS
 * shared  static: a square */
#include "triad_types.h"
#include "warp.h"

extern "C" __global__ void __launch_bounds__(TRIAD_TRANSPOSE_THREADS)
    triad_transpose(const __grid_constant__ struct triad_transpose_args a)
{
  __shared__ float square[WARP][WARP + 1];
  int line = blockIdx.y * WARP, depth = blockIdx.x * WARP;
  int along = threadIdx.x % WARP;
  for (int i = threadIdx.x / WARP; i < WARP; i += TRIAD_TRANSPOSE_THREADS / WARP)
    if (line + i < a.lines && depth + along < a.depths)
      square[i][along] = a.in[(line + i) * a.stride + depth + along];
  __syncthreads();
  for (int i = threadIdx.x / WARP; i < WARP; i += TRIAD_TRANSPOSE_THREADS / WARP)
    if (line + along < a.lines && depth + i < a.depths)
      a.out[(long long)(depth + i) * a.lines + line + along] = square[along][i];
}
