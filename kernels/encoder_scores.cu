/* SPDX-License-Identifier: BSD-3-Clause
 * encoder_scores: scores of an imported encoder (N.24) for tiles of rows and atoms.  A score that
 * is not above the atom's floor is stored as 0.
 *
 * grid    blocks of route_args, as in route
 * block   route_threads(BULK), as in route
 * shared  struct shared
 * sums    as in route; then the bias is added, and the result is multiplied by the norm (`scale`),
 *         with one rounding each
 *
 * -D BULK, ATOMS_THREAD, COLUMNS, STAGES, FRAMES (0) as in route.cu
 *
 * The launcher sets *bad to all ones.  A norm of 1 changes no bit. */
#include "products.h"
#include "warp.h"

static __device__ inline float value_finish(const struct encoder_args *a, float z, float bias,
                                            float scale, float floor, long long row, int slot)
{
  float h = __fmul_rn(__fadd_rn(z, bias), scale);
  if (magnitude(h) >= KEY_INFINITE)
    atomicMin(a->route.bad, (unsigned long long)row << 32 | (unsigned)slot);
  return h > floor ? h : 0;
}

/* row: the warp's first row; first: the tile's first atom. */
static __device__ inline void tile_store(const struct encoder_args *a,
                                         const float z[8][ATOMS_THREAD], long long row, int first)
{
  int lane = threadIdx.x % WARP;
  row += lane / 16 * 8;
#pragma unroll
  for (int j = 0; j < ATOMS_THREAD; j += 4) {
    int slot = first + 16 * j + lane % 16 * 4;
    float4 bias = *(const float4 *)(a->bias + slot), scale = *(const float4 *)(a->scale + slot);
    float4 floor = *(const float4 *)(a->floor + slot);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (row + i >= a->route.n) continue;
      float4 h;
      h.x = value_finish(a, z[i][j], bias.x, scale.x, floor.x, row + i, slot);
      h.y = value_finish(a, z[i][j + 1], bias.y, scale.y, floor.y, row + i, slot + 1);
      h.z = value_finish(a, z[i][j + 2], bias.z, scale.z, floor.z, row + i, slot + 2);
      h.w = value_finish(a, z[i][j + 3], bias.w, scale.w, floor.w, row + i, slot + 3);
      *(float4 *)(a->values + (row + i) * a->stride + slot) = h;
    }
  }
}

extern "C" __global__ void __launch_bounds__(route_threads(BULK), 1)
    encoder_scores(const __grid_constant__ struct encoder_args a)
{
  extern __shared__ __align__(128) char memory[];
  struct shared *s = (struct shared *)memory;
  const struct route_args *r = &a.route;
  struct walk w = cursor_of(r);
  if (!stages_enter(r, s, &w)) return;
  int row_tile = w.first / r->atom_tiles, atom_tile = w.first % r->atom_tiles;
  for (int left = w.pairs; left > 0; left--) {
    float z[8][ATOMS_THREAD];
    tile_scores(r, s, &w, z);
    tile_store(&a, z, (long long)row_tile * ROUTE_ROWS + threadIdx.x / WARP * 16,
               atom_tile * ATOMS);
    if (++atom_tile < r->atom_tiles) continue;
    atom_tile = 0;
    row_tile++;
  }
}
