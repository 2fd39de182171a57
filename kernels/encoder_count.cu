/* SPDX-License-Identifier: BSD-3-Clause
 * encoder_count: the number of entries of each row, which are its positive values.  If `top` is not
 * 0 and the row has more positive values, its entries are the `top` largest.  For such a row the
 * kernel also finds the cut: the key of the smallest entry.
 *
 * grid    ceil(n / ENCODER_WARPS)
 * block   ENCODER_WARPS warps: one warp per row
 * shared  static: counts of each digit, per warp */
#include "cut.h"

extern "C" __global__ void __launch_bounds__(ENCODER_WARPS *WARP)
    encoder_count(const __grid_constant__ struct encoder_args a)
{
  __shared__ int bins[ENCODER_WARPS][DIGITS];
  int warp = threadIdx.x / WARP;
  long long row = (long long)blockIdx.x * ENCODER_WARPS + warp;
  if (row >= a.route.n) return;
  const float *values = a.values + row * a.stride;
  struct encoder_cut cut = {0, 0};
  int count = values_count(values, a.stride);
  if (a.top > 0 && count > a.top) {
    cut = cut_find(values, a.stride, a.top, bins[warp]);
    count = a.top;
  }
  if (threadIdx.x % WARP) return;
  a.start[row] = count;
  a.cut[row] = cut;
}
