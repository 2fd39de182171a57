/* SPDX-License-Identifier: BSD-3-Clause
 * threshold: estimates for each row the size below which no atom needs to be listed.  The estimate
 * is made from the peaks, which are the largest sizes of a sample of atoms.  prune.cu checks it, so
 * a bad estimate costs only time.  If all sizes of the sample were kept, the sampled atoms that
 * reach the estimate are listed here, and screen.cu lists only the other atoms.
 *
 * grid    ceil(n / SCREEN_ROW_WARPS) blocks of SCREEN_ROW_WARPS warps; one warp per row
 * shared  none
 * -D TEST_HOOKS (test_hooks.h) */
#include "screen_types.h"
#include "test_hooks.h"
#include "warp.h"

/* A size that at least `rank` of the peaks reach; exactly `rank` of them if no peaks are equal. */
static __device__ inline float peaks_rank(const float *peaks, int count, int rank)
{
  int low = KEY_INFINITE, high = 0, reached = count;
  for (int i = threadIdx.x % WARP; i < count; i += WARP) {
    int own = magnitude(peaks[i]);
    if (own < low) low = own;
    if (own > high) high = own;
  }
  low = __reduce_min_sync(FULL_WARP, low);
  high = __reduce_max_sync(FULL_WARP, high) + 1;
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

/* Begin the list of a row with the sampled atoms that reach the threshold. */
static __device__ inline void sample_list(const struct screen_args *a, long long row,
                                          float threshold)
{
  const float *sizes = a->sizes + row * a->sizes_row;
  struct candidate *list = a->lists + row * a->capacity;
  int lane = threadIdx.x % WARP, count = 0;
#pragma unroll 4
  for (int first = 0; first < a->sizes_row; first += WARP) {
    struct candidate c = {sizes[first + lane], first + lane};
    unsigned mask = __ballot_sync(FULL_WARP, c.value >= threshold);
    int at = count + lanes_before(mask);
    if (c.value >= threshold && at < a->capacity) list[at] = c;
    count += __popc(mask);
  }
  if (lane == 0) a->counts[row] = count;
}

extern "C" __global__ void __launch_bounds__(SCREEN_ROW_WARPS *WARP)
    threshold(const __grid_constant__ struct screen_args a)
{
  long long row = (long long)blockIdx.x * SCREEN_ROW_WARPS + threadIdx.x / WARP;
  if (row >= a.n || a.path[row] != PATH_CERTIFIED) return;
  float size = peaks_rank(a.peaks + row * a.peaks_row, a.peaks_row, a.peak_rank);
  struct screen_test test = test_of(&a);
  float margin = 0x1p-12f * (1 - test.bound);
  float threshold = (size - 2 * a.reach[row]) * (1 - margin) * (1 + test.threshold);
  threshold = fmaxf(threshold, 0);
  if (threadIdx.x % WARP == 0) a.threshold[row] = threshold;
  if (a.sizes_row) sample_list(&a, row, threshold);
}
