/* SPDX-License-Identifier: BSD-3-Clause
 * halve_rows: rows become short operands, each in a unit of its own (C.7); the bound of each, or
 * why it takes the exact path.
 *
 * grid    row_tiles FILTER_ROWS / FILTER_ROW_WARPS of FILTER_ROW_WARPS warps; a warp a row */
#include "halve.h"

/* A row's largest magnitude. */
static __device__ inline float row_most(const float *v, int p)
{
  float most = 0;
  for (int c = threadIdx.x % WARP * PIECE; c < p; c += WARP * PIECE) {
    float x[PIECE];
    piece_read(v, c, p, x);
#pragma unroll
    for (int i = 0; i < PIECE; i++) most = fmaxf(most, fabsf(x[i]));
  }
  return __uint_as_float(__reduce_max_sync(FULL_WARP, __float_as_uint(most)));
}

/* Rows of zeros tie everywhere; below this size the chain's underflow is all there is; a size of
 * 2^120 (gates: 2^58) might overflow. */
static __device__ inline int path_of(float most, double norm, double norm_most, int d)
{
  if (!(most >= 0x1p-90f)) return PATH_SMALL;
  return norm * norm_most < (d == 1 ? 0x1p120 : 0x1p58) ? PATH_CERTIFIED : PATH_SCORE;
}

extern "C" __global__ void __launch_bounds__(FILTER_ROW_WARPS *WARP)
    halve_rows(const __grid_constant__ struct filter_args a)
{
  long long row = (long long)blockIdx.x * FILTER_ROW_WARPS + threadIdx.x / WARP;
  long long tile_bytes = (long long)a.stages * FILTER_ROWS * FILTER_ITEM;
  const float *v = row < a.n ? a.x + row * a.p : 0;
  char *tile = a.rows + row / FILTER_ROWS * tile_bytes;
  float most = v ? row_most(v, a.p) : 0;
  int power = most > 0 ? FILTER_ROW_POWER - ilogbf(most) : 0;
  double sums[3] = {0, 0, 0};
  vector_halve(v, a.p, power, tile, FILTER_ROWS, (int)(row % FILTER_ROWS), sums);
  struct filter_norms n = norms_of(sums);
  if (threadIdx.x % WARP) return;
  double norm_most = __uint_as_float(a.most->norm), error_most = __uint_as_float(a.most->error);
  a.least[row] = __int_as_float(KEY_INFINITE);
  a.counts[row] = 0;
  if (row >= a.n) return;
  double reach = bound_reach(n, norm_most, error_most, a.d, a.p, a.gamma) * (1.0 - a.less);
  a.path[row] = path_of(most, n.norm, norm_most, a.d);
  a.reach[row] = __double2float_ru(ldexp(reach, power + FILTER_ATOM_POWER));
}
