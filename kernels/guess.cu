/* SPDX-License-Identifier: BSD-3-Clause
 * guess: from the sampled peaks of a row the size below which no atom is listed.  Any guess is
 * right, since cut.cu checks it; a good one is fast.
 *
 * grid    ceil(n / FILTER_ROW_WARPS) of FILTER_ROW_WARPS warps; a warp a row */
#include "filter_types.h"
#include "warp.h"

/* A size that about `rank` of the peaks reach. */
static __device__ inline float peaks_rank(const float *peaks, int count, int rank)
{
  int low = 0, high = KEY_INFINITE, reached = count;
  while (high - low > 1 && reached > rank) {
    int middle = low + (high - low) / 2, n = 0;
    for (int i = threadIdx.x % WARP; i < count; i += WARP) n += magnitude(peaks[i]) >= middle;
    n = __reduce_add_sync(FULL_WARP, n);
    if (n >= rank) {
      low = middle;
      reached = n;
    } else {
      high = middle;
    }
  }
  return __int_as_float(low);
}

extern "C" __global__ void __launch_bounds__(FILTER_ROW_WARPS *WARP)
    guess(const __grid_constant__ struct filter_args a)
{
  long long row = (long long)blockIdx.x * FILTER_ROW_WARPS + threadIdx.x / WARP;
  if (row >= a.n || a.path[row] != PATH_CERTIFIED) return;
  float size = peaks_rank(a.peaks + row * a.peaks_row, a.peaks_row, a.peak_rank);
  float least = (size - 2 * a.reach[row]) * (1 - 0x1p-12f * (1 - a.less)) * (1 + a.high);
  if (threadIdx.x % WARP == 0) a.least[row] = fmaxf(least, 0);
}
