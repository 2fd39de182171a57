/* SPDX-License-Identifier: BSD-3-Clause
 * arrow: solves arrow systems (N.7 to N.13) whose rows fit in shared memory, and reads each once.
 *
 * grid    enough blocks for all systems: a block has arrow_threads(team) / team systems, or a
 *         cluster has one
 * block   arrow_threads(team)
 * cluster 1; or, if a team is a block, 2, 4 or 8 (9.0): each block has every 2nd, 4th or 8th lane
 * shared  arrow_shared_bytes(layout, team): rows, their pivots, sums, the border
 * sums    lanes, tree and chains of (N.12); everything else as in the formulas
 *
 * -D ARROW_D, ARROW_K, MMA; ARROW_TEAM: threads of a system, a warp or the block; ARROW_HELD:
 *    arrow_resident(), rows per thread whose factors are in registers, or 0; ARROW_ALONE:
 *    arrow_is_alone()
 *
 * Each block of a cluster makes some entries of S, and writes them to all blocks.  Then each block
 * solves the border for itself.  The steps of a system that is not ok are invalid.  The CPU then
 * solves the system. */
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
  IS_SHARED = BY_PRODUCTS && !ARROW_ALONE, /* blocks of a cluster may share a system */
  /* Rows of a thread at a time; all its rows, if it holds their factors. */
  ROWS = HELD                                      ? HELD
         : TEAM <= 128 && FRAME <= 2 && BORDER > 4 ? 2
                                                   : 1,
  /* Large frames need registers; otherwise several blocks hide each other's latency. */
  BLOCKS = HELD                                            ? arrow_resident_blocks(BORDER)
           : FRAME > 4 || BORDER > (BY_PRODUCTS ? 32 : 16) ? 1
           : FRAME > 2 || TEAM == 256 || BORDER > 16       ? 2
           : BORDER > 8                                    ? 4
           : BORDER > 4                                    ? (BY_PRODUCTS ? 5 : 4)
           : IS_TINY                                       ? ARROW_TINY_BLOCKS
           : BY_PRODUCTS                                   ? 6
                                                           : 5
};

/* A system, as one block sees it. */
struct view {
  struct arrow_atom atom;
  struct rows rows;
  double *sums; /* of the warps */
  struct border border;
  /* The number of blocks of the system; the number of this block; how many rows this block has. */
  int parts, part, count;
};

/* The rows that a thread does at a time: pointers to them, their factors, pivots and steps. */
struct own {
  double *row[ROWS], *factor[ROWS], *pivots[ROWS], *out[ROWS];
};

static __device__ inline void team_sync(void)
{
  if (TEAM == WARP)
    __syncwarp();
  else
    __syncthreads();
}

static __device__ inline struct view view_of(const struct arrow_args *a, int index, double *area)
{
  const struct arrow_layout *l = &a->layout;
  struct view v = {a->atoms[index]};
  v.parts = IS_SHARED ? ARROW_LANES >> l->shift : 1;
  v.part = IS_SHARED ? cluster_rank() : 0;
  v.count = arrow_rows_of(v.atom.n, v.part, ARROW_ALONE ? 5 : l->shift);
  v.rows.at = area;
  v.rows.pivots = area + l->pivots;
  v.rows.shift = IS_SHARED ? l->shift : 5;
  v.rows.pad = ARROW_ALONE ? arrow_pad(FRAME, BORDER, HELD, ARROW_LANES) : BY_PRODUCTS ? l->pad : 0;
  v.sums = area + l->sums;
  v.border =
      border_at(area + l->border, HELD ? arrow_sums_reals(BORDER, TEAM, HELD, ARROW_ALONE) : 0);
  return v;
}

/* A thread's rows from index q on; a missing row is replaced by the first one.  Factors are in
 * `held`, or in the rows; steps are written from `out` on. */
static __device__ inline struct own own_rows(const struct view *v, int q,
                                             double (*held)[FRAME * FRAME], double *out)
{
  struct own o;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    int at = q + r * TEAM < v->count ? q + r * TEAM : q;
    o.row[r] = row_at(&v->rows, at);
    o.factor[r] = HELD ? held[r] : o.row[r] + L_AT;
    o.pivots[r] = v->rows.pivots + at * PIVOTS;
    o.out[r] = out + (long long)row_number(at, v->part, v->rows.shift) * FRAME;
  }
  return o;
}

/* Load H of a thread's rows into `held`. */
static __device__ inline void resident_read(const struct view *v, const double *h,
                                            double (*held)[FRAME * FRAME])
{
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    int q = threadIdx.x, at = q + r * TEAM < v->count ? q + r * TEAM : q;
    if (q < v->count)
      reals_read(held[r], h + (long long)row_number(at, v->part, v->rows.shift) * (FRAME * FRAME),
                 FRAME * FRAME);
  }
}

#if BY_PRODUCTS

/* Row and column of entry e of T and w; there: 0 if there is no such entry.  Columns of the
 * triangle are taken in pairs, j and k - 1 - j, which together have k + 3 entries. */
struct place {
  int i, j, there;
};
static __device__ inline struct place position_of(int e)
{
  int there = e < ENTRIES, known = there ? e : 0;
  int pair = known / (BORDER + 3), at = known % (BORDER + 3), first = BORDER + 1 - pair;
  int j = at < first ? pair : BORDER - 1 - pair;
  struct place place = {j + (at < first ? at : at - first), j, there};
  return place;
}

/* Load entries first, first + step, .. of C and g_b, which begin at c. */
static __device__ inline void inputs_read(double *to, int each, const double *c, int first,
                                          int step)
{
#pragma unroll
  for (int r = 0; r < each; r++) {
    struct place p = position_of(first + r * step);
    to[r] = p.there ? c[border_input(p.i, p.j)] : 0;
  }
}

/* Add the sums of the warps, and write the results to the places of S.  If this is the only block,
 * the results are S and the right side, made with C and g_b from `c`. */
static __device__ inline void warps_fold(const struct view *v, int warps, const double *c)
{
  enum { EACH = (ENTRIES + TEAM - 1) / TEAM };
  double own[EACH + 1], sum[EACH + 1];
  if (v->parts == 1) inputs_read(own, EACH, c, threadIdx.x, TEAM);
  team_sync();
#pragma unroll
  for (int r = 0; r < EACH; r++) {
    struct place p = position_of(threadIdx.x + r * TEAM);
    sum[r] = tree_any(v->sums + sum_at(p.i, p.j), warps, 0);
  }
  if (HELD) team_sync(); /* all sums have been read */
#pragma unroll
  for (int r = 0; r < EACH; r++) {
    struct place p = position_of(threadIdx.x + r * TEAM);
    if (v->parts == 1) sum[r] = border_entry(p.i, p.j, own[r], sum[r], v->atom.ridge_b);
    if (p.there) column_of(&v->border, p.j)[p.i] = sum[r];
  }
}

/* Make S from the sums of `blocks` blocks; each block makes some of the entries, and writes them to
 * all blocks. */
static __device__ inline void blocks_fold(const struct view *v, const int blocks, const double *c)
{
  const int each = (ENTRIES + blocks * TEAM - 1) / (blocks * TEAM);
  int first = v->part * TEAM + threadIdx.x;
  double own[ENTRIES / (2 * TEAM) + 1]; /* enough for two blocks or more */
  inputs_read(own, each, c, first, blocks * TEAM);
  cluster_barrier();
#pragma unroll
  for (int r = 0; r < each; r++) {
    struct place p = position_of(first + r * blocks * TEAM);
    /* If there is no entry, read something that no block writes. */
    double *to = p.there ? column_of(&v->border, p.j) + p.i : v->border.step;
    double s = border_entry(p.i, p.j, own[r], tree_of(to, blocks, 1), v->atom.ridge_b);
#pragma unroll
    for (int b = 0; b < blocks && p.there; b++) cluster_put(to, b, s);
  }
  cluster_barrier();
}

/* Make S and the right side from the rows, and from C and g_b at `c`; contains barriers.  If a warp
 * has all lanes of a block, the system has at least two blocks. */
static __device__ inline void schur_make(const struct view *v, const double *c)
{
  int warps = products_add(v->sums, &v->rows, v->atom.n, v->part);
  if (LANE_WARPS > 1) warps_fold(v, warps, c);
  if (v->parts == 2) blocks_fold(v, 2, c);
  if (v->parts == 4) blocks_fold(v, 4, c);
  if (v->parts == 8) blocks_fold(v, 8, c);
}

#else

static __device__ inline void schur_make(const struct view *v, const double *)
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
      if (first >= 0 && tile_position(t, first + s, &i, &j)) column_of(&v->border, j)[i] = sum[s];
  }
  team_sync();
  border_make(&v->border, v->atom.ridge_b);
}

#endif

/* By one warp: send the determinant pair of the block's rows to the first block. */
static __device__ inline void rows_pair(const struct view *v)
{
  int lane = threadIdx.x % WARP, lanes = 1 << v->rows.shift;
  struct pair pair = pair_unit();
  pair_rows(&pair, &v->rows, lane, lane < lanes ? v->count : 0, lanes);
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

/* By one thread of the first block: write the determinant of the system. */
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

/* Solve the border.  The first warp does it; other warps help to factor S.  Then the second warp,
 * or the only one, makes the determinant pair of the rows.  Each block signals that it has read the
 * sums, and that its pair has been written.  Returns, in the first warp, whether the border
 * failed; 0 in all others. */
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
  int team = TEAMS > 1 ? threadIdx.x / TEAM : 0, thread = threadIdx.x % TEAM, failed = 0;
  int index = (int)(blockIdx.x >> (IS_SHARED ? 5 - a.layout.shift : 0)) * TEAMS + team;
  if (index >= a.count) return; /* the whole team returns; blocks with one team all have a system */
  struct view v = view_of(&a, index, shared + team * a.layout.reals);
  struct pair pair;
  const double *in = a.in + v.atom.in;
  const double *c = in + (long long)v.atom.n * (FRAME * FRAME + FRAME * BORDER + FRAME);
  double *out = a.out + v.atom.out, held[ROWS][FRAME * FRAME];
  if (HELD) resident_read(&v, in + (long long)v.atom.n * (FRAME * BORDER), held);
  rows_order(&v.rows, in, v.atom.n, 0, 0, v.count, v.part);
  if (HELD)
    border_prefetch(c);
  else
    border_order(&v.border, c);
  async_commit();
  if (thread == 0 && v.part == 0) later_prefetch(&a, index);
  if (thread == 0 && v.part == 0)
    a.found[v.atom.number].not_ok = 0; /* before any other thread may set it */
  ASYNC_WAIT(0);
  team_sync();
#pragma unroll 1
  for (int q = thread; q < v.count; q += ROWS * TEAM) {
    struct own o = own_rows(&v, q, held, out);
    failed |= rows_whiten(o.row, o.factor, o.pivots, ROWS, v.atom.ridge_t);
  }
  team_sync();
  schur_make(&v, HELD ? c : v.border.c);
  team_sync();
  failed |= border_finish(&v, &pair, out + (long long)v.atom.n * FRAME);
  team_sync();
#pragma unroll 1
  for (int q = thread; q < v.count; q += ROWS * TEAM) {
    struct own o = own_rows(&v, q, held, out);
    failed |= !rows_step(o.row, o.factor, ROWS, v.border.step, o.out);
  }
  if (failed) a.found[v.atom.number].not_ok = 1;
  if (v.parts > 1) cluster_wait();
  if (thread == 0 && v.part == 0) found_write(a.found + v.atom.number, &v, pair);
}
