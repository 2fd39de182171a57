/* SPDX-License-Identifier: BSD-3-Clause
 * tensor_gradient: gradients of matrices by the matrix unit (N.45), added to the output.
 *
 * grid    blocks, at most one per multiprocessor; cluster c of them has groups of tiles c, c +
 *         clusters, ..
 * block   tensor_threads(WGMMA)
 * shared  dynamic, tensor_shared_bytes(): struct shared, aligned to 1024 bytes
 * sums    over the rows of a batch.  A chunk of TRIAD_CHUNK_ROWS rows is summed from 0 as in
 *         tensor_product.  The chunks are added in f64, in ascending order */
#define IS_GRADIENT 1
#include "tensor_tile.h"

enum { CHUNK = TRIAD_CHUNK_ROWS / (PRECISION == TENSOR_TF32 ? 32 : 64) /* stages */ };

static __device__ inline void chunks_add(const struct tensor_args *a, struct shared *s,
                                         struct tile tile, int *serial, double sum[EIGHTS][4])
{
#pragma unroll 1
  for (int first = 0; first < a->stages; first += CHUNK) {
    float z[EIGHTS][4] = {0};
    chain_add(a, s, z, tile, first, a->stages - first < CHUNK ? a->stages - first : CHUNK, serial);
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
      for (int v = 0; v < 4; v++) sum[j][v] += (double)z[j][v];
  }
}

extern "C" __global__ void __launch_bounds__(tensor_threads(WGMMA), 1)
    tensor_gradient(const __grid_constant__ struct tensor_args a)
{
  extern __shared__ char memory[];
  struct shared *s = shared_own(memory);
  if (!stages_enter(&a, s)) return;
  int serial = 0;
  for (int number = group_first(); number < groups_of(&a); number += group_hop()) {
    struct tile tile = tile_of(&a, number);
    struct place at = position_of(tile);
    double sum[EIGHTS][4] = {0};
    chunks_add(&a, s, tile, &serial, sum);
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
      for (int v = 0; v < 4; v++) {
        int row = at.row + v / 2 * 8, column = at.column + 8 * j + v % 2;
        if (row >= a.t.rows || column >= a.t.columns) continue;
        float *to = a.t.c + row * a.t.c_row + column;
        *to = settled(*to + (float)sum[j][v]);
      }
  }
  stages_leave();
}
