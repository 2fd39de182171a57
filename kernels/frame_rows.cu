/* SPDX-License-Identifier: BSD-3-Clause
 * frame_rows: finds for each row that is routed over frames the power of two by which it is scaled
 * (N.2).  A second launch writes the scaled rows.
 *
 * grid    any number of blocks
 * block   FRAME_ROWS_WARPS warps; a warp has one row at a time
 * shared  none
 * sums    none */
#include "types.h"

/* x 2^power, rounded once. */
static __device__ inline float scaled(float x, int power)
{
  return __double2float_rn(__dmul_rn((double)x, __hiloint2double((1023 + power) << 20, 0)));
}

/* As route_power() of model/route.h. */
static __device__ inline int power_of(float max)
{
  if (max == 0 || (max >= 0x1p-39f && max < 0x1p54f)) return 0;
  return max < 1 ? -ilogbf(max) : -64;
}

/* The row's largest magnitude.  Finite magnitudes have the same order as their bits. */
static __device__ inline float row_largest(const float *x, int p)
{
  unsigned most = 0;
  for (int c = threadIdx.x % WARP; c < p; c += WARP) {
    unsigned size = __float_as_uint(x[c]) & 0x7fffffffu;
    most = size > most ? size : most;
  }
  return __uint_as_float(__reduce_max_sync(0xffffffffu, most));
}

extern "C" __global__ void __launch_bounds__(FRAME_ROWS_WARPS *WARP)
    frame_rows(const __grid_constant__ struct frame_rows_args a)
{
  int lane = threadIdx.x % WARP;
  long long step = (long long)gridDim.x * FRAME_ROWS_WARPS;
  for (long long row = (long long)blockIdx.x * FRAME_ROWS_WARPS + threadIdx.x / WARP; row < a.n;
       row += step) {
    const float *x = a.rows + row * a.p;
    if (!a.out) {
      float max = row_largest(x, a.p);
      if (lane == 0) a.power[row] = power_of(max);
      continue;
    }
    int power = a.power[row];
    for (int c = lane; c < a.p; c += WARP) a.out[row * a.p + c] = scaled(x[c], power);
  }
}
