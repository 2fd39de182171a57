/* SPDX-License-Identifier: BSD-3-Clause
 * select_topk: writes the best exact values of a certified row in the order of (N.2).  The place of
 * a value is the number of values that come before it.
 *
 * grid    ceil(n / SCREEN_ROW_WARPS) blocks of SCREEN_ROW_WARPS warps; one warp per row
 * shared  static: sort keys of CHUNK pairs per warp */
#include "screen_types.h"
#include "warp.h"

enum { CHUNK = 128 };

static __device__ inline unsigned long long pair_order(const struct screen_args *a, int pair)
{
  return order_of(a->values[pair], a->atom_of[a->pairs[pair].slot]);
}

/* The number of a row's pairs that come before the lane's own one. */
static __device__ inline int pairs_before(const struct screen_args *a, int start, int held,
                                          unsigned long long own, unsigned long long *order)
{
  int lane = threadIdx.x % WARP, before = 0;
  for (int first = 0; first < held; first += CHUNK) {
    int count = held - first < CHUNK ? held - first : CHUNK;
    __syncwarp();
    for (int i = lane; i < count; i += WARP) order[i] = pair_order(a, start + first + i);
    __syncwarp();
    for (int i = 0; i < count; i++) before += order[i] > own;
  }
  return before;
}

extern "C" __global__ void __launch_bounds__(SCREEN_ROW_WARPS *WARP)
    select_topk(const __grid_constant__ struct screen_args a)
{
  __shared__ unsigned long long orders[SCREEN_ROW_WARPS][CHUNK];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  long long row = (long long)blockIdx.x * SCREEN_ROW_WARPS + warp;
  if (row >= a.n || a.path[row] != PATH_CERTIFIED) return;
  int start = a.start[row], held = a.held[row];
  for (int first = 0; first < held; first += WARP) {
    int there = first + lane < held, pair = start + first + (there ? lane : 0);
    unsigned long long own = pair_order(&a, pair);
    int rank = pairs_before(&a, start, held, own, orders[warp]);
    struct candidate c = {a.values[pair], (int)~(unsigned)own};
    if (there && rank < a.top_k) a.out[row * a.top_k + rank] = c;
  }
}
