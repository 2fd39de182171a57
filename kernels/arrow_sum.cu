/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_sum: T, w and the pair of the rows (N.7 to N.9, N.12, N.13) of long systems, in parts.
 *
 * grid    units, that is segments of systems; arrow_parts(k), each with every so manieth lane
 * block   arrow_sum_threads(d, k): a thread has a lane's part of a tile
 * shared  arrow_sum_bytes(d, k): two lots of rows
 * sums    lanes of (N.12), and of its tree the levels that lie within a part
 *
 * -D ARROW_D, ARROW_K
 *
 * A system with a bad pivot is marked not_ok, and its parts are worth nothing. */
#define ARROW_TEAM arrow_sum_threads(ARROW_D, ARROW_K)
#define ARROW_TILE arrow_tile(ARROW_D, ARROW_K, 0)
#define SUM_LANES arrow_part_lanes(ARROW_K)
#include "arrow_sums.h"

#if __CUDA_ARCH__ >= 900
#define MANY_BLOCKS 3
#else
#define MANY_BLOCKS 2
#endif

enum {
  THREADS = ARROW_TEAM,
  PARTS = arrow_parts(BORDER),
  SHIFT = SUM_LANES == 4 ? 2 : 3, /* log2 of SUM_LANES */
  LOT = arrow_stage_rows(FRAME, BORDER),
  LOT_REALS = arrow_rows_reals(FRAME, BORDER, TILE, LOT),
  /* Two blocks, lest the compiler saves registers by spilling; three where a tile is many of them,
   * and the compiler for that architecture can do it without. */
  MANY = BORDER > 10,
  BLOCKS = FRAME > 4 || (FRAME > 2 && MANY) ? 1
           : MANY &&THREADS == 128          ? MANY_BLOCKS
                                            : 2
};

static __device__ inline struct rows lot_at(double *shared, int lot)
{
  double *at = shared + lot * LOT_REALS;
  struct rows r = {at, at + LOT * ROW + TILE * FRAME, SHIFT, 0};
  return r;
}

/* A thread's share of a part. */
struct share {
  struct tile tile;
  struct pair pair;
  double sum[SUMS];
};

/* Add a lot of whitened rows; the last lanes of the block have the pairs. */
static __device__ inline void lot_add(struct share *s, const struct rows *rows, int count)
{
  int slot = threadIdx.x / SUM_LANES, lane = threadIdx.x % SUM_LANES;
  if (slot == THREADS / SUM_LANES - 1) pair_rows(&s->pair, rows->pivots, lane, count, SUM_LANES);
  if (slot < TILES) tile_add(s->sum, s->tile, rows->at, lane, count);
}

static __device__ inline void part_write(struct share *s, double *to)
{
  int slot = threadIdx.x / SUM_LANES, first = tile_fold(s->sum), i, j;
#pragma unroll
  for (int v = 0; v < TOTALS; v++)
    if (slot < TILES && first >= 0 && tile_place(s->tile, first + v, &i, &j))
      to[i * (i + 1) / 2 + j] = s->sum[v];
  pair_fold(&s->pair, SUM_LANES);
  if (threadIdx.x != THREADS - SUM_LANES) return;
  to += BORDER * (BORDER + 1) / 2 + BORDER;
  to[0] = s->pair.m;
  to[1] = __longlong_as_double(s->pair.e);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    arrow_sum(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  struct arrow_unit unit = a.units[blockIdx.x];
  struct arrow_atom atom = a.atoms[unit.atom];
  int part = blockIdx.y, left = atom.n - unit.first;
  int rows = arrow_rows_of(left < ARROW_SEGMENT_ROWS ? left : ARROW_SEGMENT_ROWS, part, SHIFT);
  int bad = 0;
  const double *in = a.in + atom.in;
  struct share s = {tile_of(threadIdx.x / SUM_LANES), pair_unit(), {}};
  struct rows now = lot_at(shared, 0);
  rows_order(&now, in, atom.n, unit.first, 0, rows < LOT ? rows : LOT, part);
  async_commit();
#pragma unroll 1
  for (int first = 0, lot = 0; first < rows; first += LOT, lot ^= 1) {
    struct rows then = lot_at(shared, lot ^ 1);
    int next = first + LOT, more = rows - next, count = rows - first < LOT ? rows - first : LOT;
    now = lot_at(shared, lot);
    if (more > 0) rows_order(&then, in, atom.n, unit.first, next, more < LOT ? more : LOT, part);
    async_commit();
    ASYNC_WAIT(1);
    __syncthreads();
#pragma unroll 1
    for (int q = threadIdx.x; q < count; q += THREADS) {
      double *own = row_at(&now, q), *factor = own + L_AT, *pivots = now.pivots + q * FRAME;
      bad |= rows_whiten(&own, &factor, &pivots, 1, atom.ridge_t);
    }
    __syncthreads();
    lot_add(&s, &now, count);
    __syncthreads();
  }
  ASYNC_WAIT(0);
  part_write(&s, a.parts + ((long long)blockIdx.x * PARTS + part) * arrow_part_reals(BORDER));
  if (bad) a.found[atom.number].not_ok = 1;
}
