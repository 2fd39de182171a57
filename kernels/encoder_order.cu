/* SPDX-License-Identifier: BSD-3-Clause
 * encoder_order: sorts the entries of a row of topk: the larger score first, and of equal scores
 * the smaller atom.  The place of an entry is the number of entries that come before it.
 *
 * grid, block and shared as encoder_scatter, which runs before it */
#include "warp.h"

extern "C" __global__ void __launch_bounds__(ENCODER_WARPS *WARP)
    encoder_order(const __grid_constant__ struct encoder_args a)
{
  long long row = a.first + (long long)blockIdx.x * ENCODER_WARPS + threadIdx.x / WARP;
  if (row >= a.end) return;
  int begin = a.start[row] - a.start[a.first], count = a.start[row + 1] - a.start[row];
  const int *atoms = a.placed_atoms + begin;
  const float *score = a.placed_score + begin;
  for (int i = threadIdx.x % WARP; i < count; i += WARP) {
    unsigned long long own = order_of(score[i], atoms[i]);
    int rank = 0;
    for (int j = 0; j < count; j++) rank += order_of(score[j], atoms[j]) > own;
    a.atoms[begin + rank] = atoms[i];
    a.score[begin + rank] = score[i];
  }
}
