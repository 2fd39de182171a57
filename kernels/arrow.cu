/* SPDX-License-Identifier: BSD-3-Clause
 * arrow: solves arrow systems (N.7 to N.13) whose rows fit in shared memory, reading each once.
 *
 * grid    enough for all systems: arrow_threads(team) / team a block, or one a cluster
 * block   arrow_threads(team)
 * cluster 1, or with a block a team 2, 4, 8 (9.0): each block has every so manieth lane
 * shared  arrow_shared_bytes(layout, team): rows, their pivots, sums, the border
 * sums    lanes, tree and chains of (N.12); all else as the formulas say
 *
 * -D ARROW_D, ARROW_K, MMA, and ARROW_TEAM, threads of a system: a warp, or the block
 *
 * The blocks of a cluster exchange sums once, and each of them solves the border.  Steps of a
 * system that is not ok are worth nothing: the launcher's caller solves it again elsewhere. */
#define ARROW_TILE arrow_tile(ARROW_D, ARROW_K, ARROW_TEAM)
#define SUM_LANES ARROW_LANES
#include "arrow_border.h"
#include "cluster.h"
#if MMA && ARROW_TEAM > 32
#define BY_PRODUCTS 1
#include "arrow_products.h"
#else
#define BY_PRODUCTS 0
#include "arrow_sums.h"
#endif

enum {
  TEAM = ARROW_TEAM,
  THREADS = arrow_threads(TEAM),
  TEAMS = THREADS / TEAM,
  WARPS = TEAM / WARP,
  ROWS = TEAM <= 128 && FRAME <= 2 && BORDER > 4 ? 2 : 1, /* of a thread at a time */
  /* Registers for large frames, else blocks that hide each other's waiting. */
  BLOCKS = FRAME > 4 || BORDER > (BY_PRODUCTS ? 32 : 16) ? 1
           : FRAME > 2 || TEAM == 256 || BORDER > 16     ? 2
           : BORDER > 8                                  ? 4
           : BORDER > 4                                  ? (BY_PRODUCTS ? 5 : 4)
           : BY_PRODUCTS                                 ? 6
                                                         : 5
};

/* A system as a block sees it. */
struct view {
  struct arrow_atom atom;
  struct rows rows;
  struct border border;
  double *sums;           /* [warps][ENTRIES] */
  int parts, part, count; /* blocks of the system, this one, its rows */
};

static __device__ inline void team_sync(void)
{
  if (TEAM == WARP)
    __syncwarp();
  else
    __syncthreads();
}

/* A thread's row number r from place q on, or where there is none the first once more. */
static __device__ inline int own_row(const struct view *v, int q, int r)
{
  int own = q + r * TEAM;
  return own < v->count ? own : q;
}

static __device__ inline struct view view_of(const struct arrow_args *a, int index, double *area)
{
  const struct arrow_layout *l = &a->layout;
  struct view v = {a->atoms[index]};
  v.parts = BY_PRODUCTS ? ARROW_LANES >> l->shift : 1;
  v.part = BY_PRODUCTS ? cluster_rank() : 0;
  v.count = arrow_rows_of(v.atom.n, v.part, l->shift);
  v.rows.at = area;
  v.rows.pivots = area + l->pivots;
  v.rows.shift = BY_PRODUCTS ? l->shift : 5;
  v.rows.pad = BY_PRODUCTS ? l->pad : 0;
  v.sums = area + l->sums;
  v.border = border_at(area + l->border);
  return v;
}

#if BY_PRODUCTS

/* Row and column of entry e of T and w.  Columns of the triangle are taken by pairs, j and
 * k - 1 - j, which together have k + 3 entries. */
struct place {
  int i, j;
};
static __device__ inline struct place place_of(int e)
{
  int pair = e / (BORDER + 3), at = e % (BORDER + 3), first = BORDER + 1 - pair;
  int j = at < first ? pair : BORDER - 1 - pair;
  struct place place = {j + (at < first ? at : at - first), j};
  return place;
}

/* S and the right side from T and w, which are the warps' sums, or those of the blocks. */
static __device__ inline void border_place(const struct view *v, int by_blocks)
{
#pragma unroll 1
  for (int e = threadIdx.x; e < ENTRIES; e += TEAM) {
    struct place p = place_of(e);
    const double *sums = v->sums + p.i * (p.i + 1) / 2 + p.j;
    double sum = by_blocks ? tree_any(sums, v->parts, 1) : tree_of(sums, LANE_WARPS, 0);
    v->border.s[p.j * PITCH + p.i] = border_entry(&v->border, p.i, p.j, sum, v->atom.ridge_b);
  }
}

/* S and the right side from the rows; barriers within. */
static __device__ inline void schur_make(const struct view *v)
{
  int warps = products_add(v->sums, &v->rows, v->atom.n, v->part);
  team_sync();
  if (v->parts == 1) {
    border_place(v, 0);
    return;
  }
#pragma unroll 1
  for (int e = threadIdx.x; e < ENTRIES; e += TEAM) v->sums[e] = tree_any(v->sums + e, warps, 0);
  cluster_barrier();
  border_place(v, 1);
}

#else

static __device__ inline void schur_make(const struct view *v)
{
  int lane = threadIdx.x % WARP;
#pragma unroll 1
  for (int number = threadIdx.x % TEAM / WARP; number < TILES; number += WARPS) {
    struct tile t = tile_of(number);
    double sum[SUMS] = {};
    tile_add(sum, t, v->rows.at, lane, v->atom.n);
    int first = tile_fold(sum), i, j;
#pragma unroll
    for (int s = 0; s < TOTALS; s++)
      if (first >= 0 && tile_place(t, first + s, &i, &j)) v->border.s[j * PITCH + i] = sum[s];
  }
  team_sync();
  border_make(&v->border, v->atom.ridge_b);
}

#endif

/* By one warp: the pair of the block's rows, to the first block. */
static __device__ inline void rows_pair(const struct view *v)
{
  int lane = threadIdx.x % WARP, lanes = 1 << v->rows.shift;
  struct pair pair = pair_unit();
  pair_rows(&pair, v->rows.pivots, lane, lane < lanes ? v->count : 0, lanes);
  pair_fold(&pair, lanes);
  double *found = v->border.found + 2 * v->part, e = __longlong_as_double(pair.e);
  if (lane > 0) return;
  if (v->parts > 1) {
    cluster_put(found, 0, pair.m);
    cluster_put(found + 1, 0, e);
  } else {
    found[0] = pair.m;
    found[1] = e;
  }
}

/* By one thread of the first block: the determinant of the system. */
static __device__ inline void found_write(struct arrow_found *to, const struct view *v,
                                          struct pair border)
{
  const double *found = v->border.found;
  struct pair rows[ARROW_BLOCKS];
#pragma unroll
  for (int p = 0; p < ARROW_BLOCKS; p++) {
    rows[p] = pair_unit();
    if (p >= v->parts) continue;
    rows[p].m = found[2 * p];
    rows[p].e = __double_as_longlong(found[2 * p + 1]);
  }
#pragma unroll
  for (int half = ARROW_BLOCKS / 2; half >= 1; half /= 2)
#pragma unroll
    for (int p = 0; p < half; p++)
      if (half < v->parts) pair_times(&rows[p], rows[p + half]);
  pair_times(&rows[0], border);
  to->m = rows[0].m;
  to->e = rows[0].e;
}

/* The border by the first warp, whom all others help before the next one, if there is one, makes
 * the pair of the rows.  Blocks tell each other that they have read the sums, and that the pair has
 * been written.  Returns whether the border failed. */
static __device__ inline int border_finish(const struct view *v, struct pair *pair, double *out)
{
  int thread = threadIdx.x % TEAM, warp = thread / WARP;
  int good = border_factor(&v->border, warp, pair);
  if (warp == (WARPS > 1)) {
    rows_pair(v);
    if (v->parts > 1) cluster_arrive_after_writes();
  } else if (v->parts > 1) {
    cluster_arrive();
  }
  if (warp > 0) return 0;
  good &= border_back(&v->border);
  for (int j = thread; j < BORDER && v->part == 0; j += WARP) out[j] = v->border.step[j];
  return !good;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    arrow(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM, failed = 0;
  int index = (int)(blockIdx.x >> (BY_PRODUCTS ? 5 - a.layout.shift : 0)) * TEAMS + team;
  if (index >= a.count) return; /* a whole team, and with one team a block none */
  struct view v = view_of(&a, index, shared + team * a.layout.reals);
  struct arrow_found *found = a.found + v.atom.number;
  struct pair pair;
  double *out = a.out + v.atom.out;
  rows_order(&v.rows, a.in + v.atom.in, v.atom.n, 0, 0, v.count, v.part);
  border_order(&v.border, a.in + v.atom.in, v.atom.n);
  async_commit();
  if (thread == 0 && v.part == 0) found->not_ok = 0; /* before all others, who may set it */
  ASYNC_WAIT(0);
  team_sync();
#pragma unroll 1
  for (int q = thread; q < v.count; q += ROWS * TEAM) {
    double *row[ROWS], *pivots[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      int own = own_row(&v, q, r);
      row[r] = row_at(&v.rows, own);
      pivots[r] = v.rows.pivots + own * FRAME;
    }
    failed |= rows_whiten(row, pivots, ROWS, v.atom.ridge_t);
  }
  team_sync();
  schur_make(&v);
  team_sync();
  failed |= border_finish(&v, &pair, out + (long long)v.atom.n * FRAME);
  team_sync();
#pragma unroll 1
  for (int q = thread; q < v.count; q += ROWS * TEAM) {
    double *row[ROWS], *to[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      int own = own_row(&v, q, r);
      row[r] = row_at(&v.rows, own);
      to[r] = out + (long long)row_number(own, v.part, v.rows.shift) * FRAME;
    }
    failed |= !rows_step(row, ROWS, v.border.step, to);
  }
  if (failed) found->not_ok = 1;
  if (v.parts > 1) cluster_wait();
  if (thread == 0 && v.part == 0) found_write(found, &v, pair);
}
