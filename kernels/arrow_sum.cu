/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_sum: T, w and the determinant pair of the rows (N.7 to N.9, N.12, N.13) of long systems, in
 * parts.
 *
 * grid    units, which are segments of systems, times arrow_parts(k, MMA) parts: each block has
 *         every arrow_parts()-th lane.  The parts of a unit are neighbours, so that memory is read
 *         only once
 * block   arrow_sum_threads(d, k, MMA): with MMA a warp has a lane; otherwise a thread has a lane
 *         of a tile
 * shared  arrow_sum_bytes(d, k, MMA): two buffers of rows
 * sums    lanes of (N.12), and the levels of its tree that lie within a part
 *
 * -D ARROW_D, ARROW_K, MMA
 *
 * A system with a bad pivot is marked not_ok, and its parts are invalid. */
#define ARROW_TEAM arrow_sum_threads(ARROW_D, ARROW_K, MMA)
#define ARROW_TILE arrow_tile(ARROW_D, ARROW_K, 0)
#define SUM_LANES arrow_part_lanes(ARROW_K, MMA)
#if MMA
#include "arrow_products.h"
#else
#include "arrow_sums.h"
#endif

enum {
  THREADS = ARROW_TEAM,
  PARTS = arrow_parts(BORDER, MMA),
  SHIFT = SUM_LANES == 4 ? 2 : 3,        /* log2 of SUM_LANES */
  LOT = arrow_stage_rows(FRAME, BORDER), /* rows in shared memory at a time */
  LOT_REALS = arrow_subbatch_reals(FRAME, BORDER, MMA),
  PIVOTS_AT = LOT_REALS - LOT * FRAME,
  PAD = MMA ? arrow_pad(FRAME, BORDER, 0, SUM_LANES) : 0,
  TELL_AT_ONCE = !MMA, /* 1: report a bad pivot at once, since tiles leave no register for it */
  /* Blocks on a multiprocessor, such that the compiler does not spill registers. */
  BLOCKS = FRAME > 4 || (FRAME > 2 && BORDER > 10)                 ? 1
           : BORDER > 10 && THREADS == 128 && __CUDA_ARCH__ >= 900 ? 3
                                                                   : 2
};
static_assert(SUM_LANES == 1 << SHIFT && LOT % SUM_LANES == 0, "arrow_types.h");

static __device__ inline struct rows subbatch_at(double *shared, int lot)
{
  double *at = shared + lot * LOT_REALS;
  struct rows r = {at, at + PIVOTS_AT, SHIFT, PAD};
  return r;
}

#if MMA

enum { PASSES = (PRODUCTS + TOGETHER - 1) / TOGETHER };

/* A warp's sums of its lane. */
struct share {
  double sum[PASSES + !PASSES][TOGETHER][4];
};

/* Add whitened rows. */
static __device__ inline void subbatch_sum(struct share *s, const struct rows *rows, int count)
{
  int own = threadIdx.x / WARP, terms = (count - own + SUM_LANES - 1) / SUM_LANES * FRAME, term = 0;
  struct chain c = {rows->at + own * ROW + threadIdx.x % WARP / 4 * FRAME, (ROW << SHIFT) + PAD,
                    terms / FRAME};
#pragma unroll 2
  for (; term + 4 <= terms; term += 4)
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) terms_add(s->sum[pass], pass, &c, term, 1);
  if (term >= terms) return;
#pragma unroll
  for (int pass = 0; pass < PASSES; pass++) terms_add(s->sum[pass], pass, &c, term, 0);
}

/* Write the sums of the lanes, when all rows have been read. */
static __device__ inline void sums_write(const struct share *s, double *shared, double *to)
{
#pragma unroll
  for (int pass = 0; pass < PASSES; pass++)
    products_write(shared + threadIdx.x / WARP * ENTRIES, pass, s->sum[pass], 0);
  __syncthreads();
  for (int e = threadIdx.x; e < ENTRIES; e += THREADS) to[e] = tree_of(shared + e, SUM_LANES, 0);
}
static_assert(THREADS / WARP == SUM_LANES && SUM_LANES * ENTRIES <= 2 * LOT_REALS, "arrow_types.h");

#else

/* A thread's sums of its lane of a tile. */
struct share {
  double sum[SUMS];
};

static __device__ inline void subbatch_sum(struct share *s, const struct rows *rows, int count)
{
  if (threadIdx.x / SUM_LANES < TILES)
    tile_add(s->sum, tile_of(threadIdx.x / SUM_LANES), rows->at, threadIdx.x % SUM_LANES, count);
}

static __device__ inline void sums_write(struct share *s, double *, double *to)
{
  int first = tile_fold(s->sum), i, j;
#pragma unroll
  for (int v = 0; v < TOTALS; v++)
    if (threadIdx.x / SUM_LANES < TILES && first >= 0 &&
        tile_position(tile_of(threadIdx.x / SUM_LANES), first + v, &i, &j))
      to[i * (i + 1) / 2 + j] = s->sum[v];
}
static_assert(TILES * SUM_LANES <= THREADS, "arrow_types.h");

#endif

/* Each of the last SUM_LANES threads has the determinant pair of a lane.  Multiply these pairs, and
 * write the product. */
static __device__ inline void pair_write(struct pair *pair, double *to)
{
  pair_fold(pair, SUM_LANES);
  if (threadIdx.x != THREADS - SUM_LANES) return;
  to[0] = pair->m;
  to[1] = __longlong_as_double(pair->e);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    arrow_sum(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  struct arrow_unit unit = a.units[blockIdx.x / PARTS];
  struct arrow_atom atom = a.atoms[unit.atom];
  int part = blockIdx.x % PARTS, left = atom.n - unit.first;
  int rows = arrow_rows_of(left < ARROW_SEGMENT_ROWS ? left : ARROW_SEGMENT_ROWS, part, SHIFT);
  int bad = 0;
  const double *in = a.in + atom.in;
  struct share s = {};
  struct pair pair = pair_unit();
  struct rows now = subbatch_at(shared, 0);
  rows_order(&now, in, atom.n, unit.first, 0, rows < LOT ? rows : LOT, part);
  async_commit();
#pragma unroll 1
  for (int first = 0, lot = 0; first < rows; first += LOT, lot ^= 1) {
    struct rows then = subbatch_at(shared, lot ^ 1);
    int next = first + LOT, more = rows - next, count = rows - first < LOT ? rows - first : LOT;
    now = subbatch_at(shared, lot);
    if (more > 0) rows_order(&then, in, atom.n, unit.first, next, more < LOT ? more : LOT, part);
    async_commit();
    ASYNC_WAIT(1);
    __syncthreads();
#pragma unroll 1
    for (int q = threadIdx.x; q < count; q += THREADS) {
      double *own = row_at(&now, q), *factor = own + L_AT, *pivots = now.pivots + q * FRAME;
      if (!TELL_AT_ONCE)
        bad |= rows_whiten(&own, &factor, &pivots, 1, atom.ridge_t);
      else if (rows_whiten(&own, &factor, &pivots, 1, atom.ridge_t))
        a.found[atom.number].not_ok = 1;
    }
    __syncthreads();
    subbatch_sum(&s, &now, count);
    if (threadIdx.x >= THREADS - SUM_LANES)
      pair_rows(&pair, &now, threadIdx.x % SUM_LANES, count, SUM_LANES);
    __syncthreads();
  }
  ASYNC_WAIT(0);
  double *to = a.parts + (long long)blockIdx.x * arrow_part_reals(BORDER);
  sums_write(&s, shared, to);
  pair_write(&pair, to + border_sums(BORDER));
  if (bad) a.found[atom.number].not_ok = 1;
}
