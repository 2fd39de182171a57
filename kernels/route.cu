/* SPDX-License-Identifier: BSD-3-Clause
 * route: exact scores (N.1) of tiles of rows and atoms, and selection of candidates for each row,
 * on the chip.
 * grid    blocks of route_args, at most one per multiprocessor.  Of all `total` pairs of a row tile
 *         and an atom tile, ordered by row tile, block b has the pairs total b / blocks ..
 *         total (b + 1) / blocks - 1
 * block   route_threads(BULK): 8 warps that compute and, for bulk copies, 4 that copy; a warp has
 *         16 rows, a thread 8 rows x ATOMS_THREAD atoms
 * shared  struct shared: STAGES stages of COLUMNS columns of both operands, scores of 16 rows per
 *         warp, thresholds and lengths of lists
 * sums    columns ascending from +0, two roundings per term; frames: gates, vectors ascending
 *
 * -D BULK          1: bulk copies by warps of their own (sm_90a and up), 0: cp.async (sm_80)
 * -D ATOMS_THREAD  16 or 8
 * -D COLUMNS, STAGES, FRAMES (0: d is 1), CAPACITY (lists.h), POSITIVE (positive.h)
 *
 * row_tiles and atom_tiles are at least 1, and row_tiles atom_tiles < 2^31.  parts is the largest
 * route_parts_of() of all row tiles, at most min(blocks, blocks / row_tiles + 2).  The launcher
 * sets *bad to all ones; lists and counts need not be initialised.
 *
 * 93 of 100 instructions are multiplications and additions, so little can be gained.  Vectors of
 * four are loaded but never stored: a vector store would force accumulators into aligned registers.
 * The inner loop has to fit in the instruction cache. */
#include "products.h"
#include "select.h"

static_assert(sizeof(struct shared) == route_shared_bytes(ATOMS_THREAD, COLUMNS, STAGES),
              "forms.h");

/* Start empty lists for a row tile.  They accept every score; lists of rows past the last one
 * accept only scores that are not finite. */
static __device__ inline void target_begin(const struct route_args *a, int row_tile,
                                           struct target *t)
{
  int lane = threadIdx.x % WARP;
  long long pairs = (long long)a->row_tiles * a->atom_tiles;
  t->row = (long long)row_tile * ROUTE_ROWS + threadIdx.x / WARP * 16;
  t->part = blockIdx.x - route_block_of((long long)row_tile * a->atom_tiles, pairs, a->blocks);
  if (lane < 16) {
    t->threshold[lane] = t->row + lane < a->n ? 0 : KEY_INFINITE;
    t->length[lane] = 0;
  }
  __syncwarp();
}

/* The scores of a tile become candidates of its rows. */
static __device__ inline void tile_select(const struct route_args *a, struct shared *s,
                                          const float z[8][ATOMS_THREAD], const struct target *t)
{
  unsigned rows = scores_keep(z, t->threshold, s->scratch[threadIdx.x / WARP]);
  __syncwarp();
#pragma unroll 1
  for (; rows; rows &= rows - 1) {
    rows_append(a, t, __ffs(rows) - 1);
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(route_threads(BULK), 1)
    route(const __grid_constant__ struct route_args a)
{
  extern __shared__ __align__(128) char memory[];
  struct shared *s = (struct shared *)memory;
  struct walk w = cursor_of(&a);
  if (!stages_enter(&a, s, &w)) return;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, fresh = 1;
  struct target t = {0, 0, 0, s->threshold + warp * 16, s->length + warp * 16, s->scratch[warp]};
  int row_tile = w.first / a.atom_tiles, atom_tile = w.first % a.atom_tiles;
  for (int left = w.pairs; left > 0; left--) {
    float z[8][ATOMS_THREAD];
    if (fresh) target_begin(&a, row_tile, &t);
    tile_scores(&a, s, &w, z);
    t.first = atom_tile * ATOMS;
    tile_select(&a, s, z, &t);
    fresh = ++atom_tile == a.atom_tiles || left == 1;
    if (fresh && lane < 16) a.counts[(t.row + lane) * a.parts + t.part] = t.length[lane];
    if (atom_tile == a.atom_tiles) {
      atom_tile = 0;
      row_tile++;
    }
  }
}
