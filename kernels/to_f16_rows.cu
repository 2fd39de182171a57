/* SPDX-License-Identifier: BSD-3-Clause
 * to_f16_rows: converts rows to fp16, each row with a scale of its own (C.7).  It finds the error
 * bound of each row, and whether the row may be certified or takes the direct path.
 *
 * grid    row_tiles * SCREEN_ROWS / SCREEN_ROW_WARPS blocks of SCREEN_ROW_WARPS warps; one warp per
 *         row
 * shared  none
 * -D TEST_HOOKS (test_hooks.h) */
#include "test_hooks.h"
#include "to_f16.h"

/* A row's largest magnitude. */
static __device__ inline float max_magnitude(const float *v, int p)
{
  float max = 0;
  for (int c = threadIdx.x % WARP * PIECE; c < p; c += WARP * PIECE) {
    float x[PIECE];
    piece_read(v, c, p, x);
#pragma unroll
    for (int i = 0; i < PIECE; i++) max = fmaxf(max, fabsf(x[i]));
  }
  return __uint_as_float(__reduce_max_sync(FULL_WARP, __float_as_uint(max)));
}

/* The path of a row.  PATH_SMALL: in a row below 2^-90, underflow of the chains dominates the
 * error, and in a row of zeros all atoms tie.  PATH_SCORE: scores of 2^120 and more (norms for
 * gates: 2^58) might overflow. */
static __device__ inline int path_of(float max, double norm, double max_norm, int d)
{
  if (!(max >= 0x1p-90f)) return PATH_SMALL;
  return norm * max_norm < (d == 1 ? 0x1p120 : 0x1p58) ? PATH_CERTIFIED : PATH_SCORE;
}

extern "C" __global__ void __launch_bounds__(SCREEN_ROW_WARPS *WARP)
    to_f16_rows(const __grid_constant__ struct screen_args a)
{
  long long row = (long long)blockIdx.x * SCREEN_ROW_WARPS + threadIdx.x / WARP;
  long long tile_bytes = (long long)a.stages * SCREEN_ROWS * SCREEN_ITEM;
  const float *v = row < a.n ? a.x + row * a.p : 0;
  char *tile = a.rows + row / SCREEN_ROWS * tile_bytes;
  float max = v ? max_magnitude(v, a.p) : 0;
  int power = max > 0 ? SCREEN_ROW_POWER - ilogbf(max) : 0;
  double sums[3] = {0, 0, 0};
  double mean = vector_to_f16(v, a.p, power, tile, SCREEN_ROWS, (int)(row % SCREEN_ROWS), sums, 1);
  struct screen_norms n = norms_of(sums, mean);
  if (threadIdx.x % WARP) return;
  double max_norm = __uint_as_float(a.norms->norm), max_error = __uint_as_float(a.norms->error);
  a.threshold[row] = __int_as_float(KEY_INFINITE);
  a.counts[row] = 0;
  if (row >= a.n) return;
  double keep = 1.0 - test_of(&a).bound;
  double reach = bound_reach(n, max_norm, max_error, a.d, a.p, a.gamma) * keep;
  a.path[row] = path_of(max, n.norm, max_norm, a.d);
  a.reach[row] = __double2float_ru(ldexp(reach, power + SCREEN_ATOM_POWER));
}
