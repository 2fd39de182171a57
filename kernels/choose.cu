/* SPDX-License-Identifier: BSD-3-Clause
 * choose: the best of a certified row's exact values, in order (N.2).
 *
 * grid    ceil(n / FILTER_ROW_WARPS) of FILTER_ROW_WARPS warps; a warp a row
 * shared  dynamic: orders of a row's pairs, FILTER_ROW_WARPS x capacity */
#include "filter_types.h"
#include "warp.h"

extern "C" __global__ void __launch_bounds__(FILTER_ROW_WARPS *WARP)
    choose(const __grid_constant__ struct filter_args a)
{
  extern __shared__ unsigned long long orders[];
  int lane = threadIdx.x % WARP;
  long long row = (long long)blockIdx.x * FILTER_ROW_WARPS + threadIdx.x / WARP;
  unsigned long long *order = orders + threadIdx.x / WARP * a.capacity;
  if (row >= a.n || a.path[row] != PATH_CERTIFIED) return;
  int start = a.start[row], held = a.held[row];
  for (int i = lane; i < held; i += WARP)
    order[i] = order_of(a.values[start + i], a.atom_of[a.pairs[start + i].slot]);
  __syncwarp();
  for (int i = lane; i < held; i += WARP) {
    unsigned long long own = order[i];
    int rank = 0;
    for (int j = 0; j < held; j++) rank += order[j] > own;
    struct candidate c = {a.values[start + i], (int)~(unsigned)own};
    if (rank < a.take) a.out[row * a.take + rank] = c;
  }
}
