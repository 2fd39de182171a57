/* SPDX-License-Identifier: BSD-3-Clause
 * merge: joins the lists of a row from all blocks that had some of its tiles, and replaces slots by
 * atoms.  The result is in the order of (N.2).
 *
 * grid    ceil(n / MERGE_WARPS) blocks of MERGE_WARPS warps; one warp per row
 * shared  static: one list per warp
 *
 * It has the arguments of route, which runs before it, and writes all of out[n][top_k].
 * -D CAPACITY (lists.h) */
#define FRESH 4
#include "lists.h"
#include "forms.h"

extern "C" __global__ void __launch_bounds__(MERGE_WARPS *WARP, 4)
    merge(const __grid_constant__ struct route_args a)
{
  __shared__ struct candidate lists[MERGE_WARPS][CAPACITY];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  long long row = (long long)blockIdx.x * MERGE_WARPS + warp;
  if (row >= a.n) return;
  struct candidate *list = lists[warp];
  int threshold = 0, length = 0, row_tile = (int)(row / ROUTE_ROWS);
  int parts = route_parts_of(row_tile, a.row_tiles, a.atom_tiles, a.blocks);
  for (int part = 0; part < parts; part++) {
    const struct candidate *from = a.lists + (row * a.parts + part) * CAPACITY;
    int count = a.counts[row * a.parts + part];
    for (int first = 0; first < count; first += FRESH * WARP) {
      float value[FRESH];
      int key[FRESH], atom[FRESH];
#pragma unroll
      for (int i = 0; i < FRESH; i++) {
        int at = first + i * WARP + lane;
        struct candidate none = {0, -1}, c = at < count ? from[at] : none;
        value[i] = c.value;
        atom[i] = at < count ? a.atom_of[c.atom] : -1;
        key[i] = at < count ? magnitude(c.value) : -1;
      }
      length = list_absorb(list, length, &threshold, a.top_k, 0, 0, value, key, atom);
    }
  }
  struct candidate *out = a.out + row_named(&a, row) * a.top_k;
  for (int i = lane; i < length; i += WARP) {
    unsigned long long own = order_of(list[i].value, list[i].atom);
    int rank = 0;
    for (int j = 0; j < length; j++) rank += order_of(list[j].value, list[j].atom) > own;
    if (rank < a.top_k) out[rank] = list[i];
  }
  struct candidate none = {0, -1};
  for (int i = length + lane; i < a.top_k; i += WARP) out[i] = none;
}
