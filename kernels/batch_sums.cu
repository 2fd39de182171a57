/* SPDX-License-Identifier: BSD-3-Clause
 * batch_sums: sums over the rows of a batch: the gradient of a matrix whose input is 1 (N.41).
 *
 * grid    ceil(p / WARP)
 * block   (WARP, SUMS_WARPS): one column per lane, one chunk of rows per warp
 * shared  static: the sums of the current chunks
 * sums    a chain in f32 for each chunk of rows, ascending; chunks ascending in f64 */
#include "batch_types.h"
#include "warp.h"

/* The chain of rows first .. end - 1. */
static __device__ inline float chunk_sum(const struct batch_sums_args *a, int column,
                                         long long first, long long end)
{
  float sum = 0;
  for (long long row = first; row < end; row += SUMS_AHEAD) {
    float x[SUMS_AHEAD];
#pragma unroll
    for (int i = 0; i < SUMS_AHEAD; i++)
      x[i] = row + i < end ? a->rows[(row + i) * a->stride + column] : 0;
#pragma unroll
    for (int i = 0; i < SUMS_AHEAD; i++) sum = __fadd_rn(sum, x[i]);
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(WARP *SUMS_WARPS)
    batch_sums(const __grid_constant__ struct batch_sums_args a)
{
  __shared__ float chunks[SUMS_WARPS][WARP];
  int column = blockIdx.x * WARP + threadIdx.x, chunk = threadIdx.y;
  double sum = 0;
  for (long long at = 0; at < a.n; at += SUMS_WARPS * SUMS_ROWS) {
    long long first = at + (long long)chunk * SUMS_ROWS;
    long long end = first + SUMS_ROWS < a.n ? first + SUMS_ROWS : a.n;
    chunks[chunk][threadIdx.x] = column < a.p ? chunk_sum(&a, column, first, end) : 0;
    __syncthreads();
    for (int i = 0; i < SUMS_WARPS; i++) sum += (double)chunks[i][threadIdx.x];
    __syncthreads();
  }
  float rounded = (float)sum;
  if (chunk == 0 && column < a.p)
    a.to[column] = rounded == rounded ? rounded : __int_as_float(0x7fc00000);
}
