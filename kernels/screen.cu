/* SPDX-License-Identifier: BSD-3-Clause
 * screen: computes coarse sizes of tiles of rows and atoms by the matrix unit.  Sizes that reach
 * the threshold estimate of their row go to the row's list (C.6).  For the sample there are no
 * lists: the largest sizes of each tile are kept, and also all sizes if sizes_row is not 0.
 *
 * grid    blocks of screen_args, at most one per multiprocessor: block b has pairs b, b + blocks,
 *         ..
 * block   screen_threads(WGMMA): 8 warps that multiply, 16 rows x VECTORS items each, and for wgmma
 *         4 that copy
 * shared  dynamic, screen_shared_bytes(VECTORS, STAGES): struct shared, aligned to 1024 bytes
 * sums    in the order of the matrix unit, which the bound covers (doc/certified.md)
 *
 * -D WGMMA    1: wgmma and bulk copies (sm_90a), 0: mma.sync and cp.async (sm_80)
 * -D VECTORS  items of an atom tile
 * -D FRAME    items of a frame: 1, 2, 4, 8
 * -D SAMPLE   1: atom_tiles and slots are those of the sample; 0: tiles begin at first_tile
 * -D STAGES
 * -D POSITIVE 1: the size of a score is its positive part (FRAME 1) */
#include "screen.h"

#if WGMMA
#include "screen_wgmma.h"
#else
#include "screen_mma.h"
#endif

static_assert(sizeof(struct shared) + 1024 == screen_shared_bytes(VECTORS, STAGES),
              "screen_types.h");

extern "C" __global__ void __launch_bounds__(screen_threads(WGMMA), 1)
    screen(const __grid_constant__ struct screen_args a)
{
  extern __shared__ char memory[];
  struct shared *s = (struct shared *)(memory + (1024 - shared_address(memory) % 1024) % 1024);
  if (!stages_enter(&a, s)) return;
  int serial = 0;
  struct tile_pair pair = pair_first(&a);
  struct lane_rows rows = lane_rows_of(&a, s, &pair);
  while (pair_is(&a, &pair)) {
    float z[EIGHTS][4];
    struct lane_rows before = rows;
    rows = lane_rows_of(&a, s, &pair);
    tile_multiply(&a, s, z, &pair, &serial, &before);
    if (SAMPLE && FRAME == 1 && a.sizes_row) tile_sizes(&a, &rows, z);
    if (SAMPLE)
      tile_peaks(&a, &rows, z);
    else
      tile_catch(&rows, z);
  }
  hits_append(&a, &rows);
}
