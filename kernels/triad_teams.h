/* SPDX-License-Identifier: BSD-3-Clause
 * The tiles of a matrix that a block computes, piece by piece: its part of the tiles that teams
 * divide (struct triad_teams).  One block may begin a chain and another block continue it.  The
 * chain is passed on as it is, so the bits are the same.
 *
 * Floor: kernels.  Includes triad_pipe.h.
 *
 * A block begins with whole tiles, as all blocks do, so that blocks read the same operands from the
 * cache.  Then come the tile that it passes on, its last whole tile, and the tile that it
 * continues.  A block waits only for a block with a lower number.  That block passes its tile on
 * before it waits for another block. */
#include "triad_pipe.h"

/* Depths begin .. end - 1 of a tile; begin = end: no tile. */
struct piece {
  struct corner corner;
  int begin, end;
};

static __device__ inline struct corner corner_in_line(const struct triad_teams *t, int tile)
{
  int member = blockIdx.x % t->blocks;
  struct corner corner = {(t->are_rows ? tile : member) * TILE_ROWS,
                          (t->are_rows ? member : tile) * TILE_COLUMNS};
  return corner;
}

/* Piece i of this block's share, in the order of work. */
static __device__ inline struct piece piece_shared(const struct triad_args *t, int i)
{
  const struct triad_teams *s = &t->teams;
  long long stages = t->depth / DEPTHS, all = stages * s->tiles, team = blockIdx.x / s->blocks;
  long long from = team * all / s->count, to = (team + 1) * all / s->count;
  /* tail: the stages of this team's first tile that the team before adds.  head: the stages of its
   * last tile that this team adds. */
  int tail = (int)(from % stages), head = (int)(to % stages);
  int first = (int)((from + stages - 1) / stages), whole = (int)(to / stages) - first;
  int before = whole > 0 ? whole - 1 : 0;
  struct piece none = {{0, 0}, 0, 0}, tile = {{0, 0}, 0, t->depth};
  if (i < before) {
    tile.corner = corner_in_line(s, first + i);
    return tile;
  }
  i -= before;
  if (head && i-- == 0) {
    tile.corner = corner_in_line(s, first + whole);
    tile.end = head * DEPTHS;
    return tile;
  }
  if (whole && i-- == 0) {
    tile.corner = corner_in_line(s, first + whole - 1);
    return tile;
  }
  if (!tail || i > 0) return none;
  tile.corner = corner_in_line(s, first - 1);
  tile.begin = tail * DEPTHS;
  return tile;
}

/* chains_pass: pass on this thread's part of the chains of a tile.  chains_take: wait for the block
 * of the team before, and take its chains. */
static __device__ inline void chains_pass(const struct triad_args *t,
                                          const float (*acc)[COLUMNS_OWN])
{
  float *to = t->teams.passed + (long long)blockIdx.x * OWN * THREADS + threadIdx.x;
#pragma unroll
  for (int n = 0; n < OWN; n++) __stcg(to + n * THREADS, acc[n / COLUMNS_OWN][n % COLUMNS_OWN]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(t->teams.is_passed + blockIdx.x, 1);
}

static __device__ inline void chains_take(const struct triad_args *t, float (*acc)[COLUMNS_OWN])
{
  int of = blockIdx.x - t->teams.blocks;
  const float *from = t->teams.passed + (long long)of * OWN * THREADS + threadIdx.x;
  if (threadIdx.x == 0)
    while (!*(volatile int *)(t->teams.is_passed + of)) continue;
  __threadfence();
  __syncthreads();
#pragma unroll
  for (int n = 0; n < OWN; n++) acc[n / COLUMNS_OWN][n % COLUMNS_OWN] = __ldcg(from + n * THREADS);
}
