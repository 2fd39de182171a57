/* SPDX-License-Identifier: BSD-3-Clause
 * triad_dots: for each entry of a list the product of two rows (N.42).
 *
 * grid    ceil(lists / DOTS_WARPS), at most TRIAD_MAX_LISTS at a time
 * block   DOTS_WARPS warps: one list per warp, one entry per lane
 * shared  static: a tile of the rows that the entries name, per warp
 * sums    a chain of fma for each entry, ascending columns */
#include "triad_types.h"

enum { LANES = 32, DOTS_WARPS = TRIAD_THREADS / LANES, PITCH = LANES + 1 };

/* Read the columns from `column` on of n matrix rows; `row` of lane v is the index of the v-th of
 * these rows.  Missing numbers are zeros. */
static __device__ inline void tile_read(const struct triad_list_args *t, long long row, int n,
                                        int column, float (*tile)[PITCH])
{
  int c = column + (int)threadIdx.x % LANES;
#pragma unroll 16
  for (int v = 0; v < LANES; v++) {
    long long its = __shfl_sync(0xffffffffu, row, v);
    tile[v][threadIdx.x % LANES] = v < n && c < t->width ? t->matrix[its * t->width + c] : 0;
  }
  __syncwarp();
}

/* Continue the chain over the tile's columns.  own: the number of the list's row in the column of
 * this lane. */
static __device__ inline float tile_add(const float *line, float own, int columns, float acc)
{
  if (columns >= LANES) {
#pragma unroll
    for (int c = 0; c < LANES; c++) acc = fmaf(__shfl_sync(0xffffffffu, own, c), line[c], acc);
    return acc;
  }
  for (int c = 0; c < columns; c++) acc = fmaf(__shfl_sync(0xffffffffu, own, c), line[c], acc);
  return acc;
}

extern "C" __global__ void __launch_bounds__(TRIAD_THREADS)
    triad_dots(const __grid_constant__ struct triad_list_args t)
{
  __shared__ float tiles[DOTS_WARPS][LANES][PITCH];
  int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  long long step = (long long)gridDim.x * DOTS_WARPS;
  for (long long i = (long long)blockIdx.x * DOTS_WARPS + warp; i < t.count; i += step) {
    const float *row = t.rows + i * t.width;
    for (long long e = t.start[i]; e < t.start[i + 1]; e += LANES) {
      int n = t.start[i + 1] - e < LANES ? (int)(t.start[i + 1] - e) : LANES;
      long long named = t.index[e + (lane < n ? lane : 0)];
      float acc = 0;
      for (int column = 0; column < t.width; column += LANES) {
        float own = column + lane < t.width ? row[column + lane] : 0;
        tile_read(&t, named, n, column, tiles[warp]);
        acc = tile_add(tiles[warp][lane], own, t.width - column, acc);
        __syncwarp();
      }
      if (lane < n) t.out[e + lane] = acc;
    }
  }
}
