/* SPDX-License-Identifier: BSD-3-Clause
 * encoder_scatter: the entries of rows first .. end - 1, row by row, in ascending order of atoms.
 *
 * grid    ceil((end - first) / ENCODER_WARPS)
 * block   ENCODER_WARPS warps: one warp per row
 * shared  none
 *
 * stride is a multiple of UNROLLED WARP. */
#include "warp.h"

enum { UNROLLED = 4 };

extern "C" __global__ void __launch_bounds__(ENCODER_WARPS *WARP)
    encoder_scatter(const __grid_constant__ struct encoder_args a)
{
  int lane = threadIdx.x % WARP;
  long long row = a.first + (long long)blockIdx.x * ENCODER_WARPS + threadIdx.x / WARP;
  if (row >= a.end) return;
  const float *values = a.values + row * a.stride;
  struct encoder_cut cut = a.cut[row];
  int at = a.start[row] - a.start[a.first];
  for (int first = 0; first < a.stride; first += UNROLLED * WARP) {
    float value[UNROLLED];
#pragma unroll
    for (int u = 0; u < UNROLLED; u++) value[u] = values[first + u * WARP + lane];
#pragma unroll
    for (int u = 0; u < UNROLLED; u++) {
      int key = __float_as_int(value[u]);
      unsigned tied = __ballot_sync(FULL_WARP, key == cut.key);
      int kept = key > cut.key || (key == cut.key && lanes_before(tied) < cut.ties);
      unsigned mask = __ballot_sync(FULL_WARP, kept);
      if (kept) {
        a.placed_atoms[at + lanes_before(mask)] = first + u * WARP + lane;
        a.placed_score[at + lanes_before(mask)] = value[u];
      }
      at += __popc(mask);
      cut.ties = cut.ties > __popc(tied) ? cut.ties - __popc(tied) : 0;
    }
  }
}
