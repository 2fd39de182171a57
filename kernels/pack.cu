/* SPDX-License-Identifier: BSD-3-Clause
 * pack: copies items [count][d][p] into tiles [tile][d][columns][width].  Missing items and columns
 * become zeros.
 *
 * grid    (ceil(columns / 32), ceil(padded / 32), d)
 * block   32 x 8
 * shared  static: one 32 x 32 square
 *
 * columns = packed_columns(p).  For rows: d = 1, width = ROUTE_ROWS, first = 0 and padded =
 * row_tiles ROUTE_ROWS.  For atoms: width = route_tile_atoms(atoms_thread), first = the number of
 * slots that are packed already, and first + padded is a multiple of width. */
#include "types.h"

extern "C" __global__ void __launch_bounds__(256) pack(const __grid_constant__ struct pack_args a)
{
  __shared__ float square[WARP][WARP + 1];
  int column = blockIdx.x * WARP, item = blockIdx.y * WARP, vector = blockIdx.z;
  for (int i = threadIdx.y; i < WARP; i += 8) {
    int c = column + threadIdx.x;
    int there = item + i < a.count && c < a.p;
    long long from = a.row_of && there ? a.row_of[item + i] : item + i;
    square[i][threadIdx.x] = there ? a.in[(from * a.d + vector) * a.p + c] : 0;
  }
  __syncthreads();
  int slot = a.first + item + threadIdx.x;
  long long tile = (long long)(slot / a.width) * a.d + vector;
  for (int i = threadIdx.y; i < WARP; i += 8)
    if (item + (int)threadIdx.x < a.padded && column + i < a.columns)
      a.out[(tile * a.columns + column + i) * a.width + slot % a.width] = square[threadIdx.x][i];
}
