/* SPDX-License-Identifier: BSD-3-Clause
 * arrow: solves arrow systems (N.7 to N.13) whose rows fit in shared memory, reading each once.
 *
 * grid    enough for all systems, arrow_threads(team) / team a block
 * block   arrow_threads(team)
 * shared  arrow_shared_bytes(d, k, team, rows): rows, then the border, for each system
 * sums    lanes, tree and chains of (N.12); all else as the formulas say
 *
 * -D ARROW_D, ARROW_K, and ARROW_TEAM, threads of a system: a warp, or the block
 *
 * A system that is not ok has steps 0: the launcher's caller solves it again elsewhere. */
#define ARROW_TILE arrow_tile(ARROW_D, ARROW_K, ARROW_TEAM)
#define SUM_LANES ARROW_LANES
#include "arrow_border.h"
#include "arrow_sums.h"

enum {
  TEAM = ARROW_TEAM,
  THREADS = arrow_threads(TEAM),
  TEAMS = THREADS / TEAM,
  WARPS = TEAM / WARP,
  /* Registers for large frames, else blocks that hide each other's waiting. */
  BLOCKS = FRAME > 4 || BORDER > 16   ? 1
           : FRAME > 2 || TEAM == 256 ? 2
           : BORDER > 4               ? 4
                                      : 5
};

static __device__ inline void team_sync(void)
{
  if (TEAM == WARP)
    __syncwarp();
  else
    __syncthreads();
}

/* A barrier too. */
static __device__ inline int team_any(int x)
{
  if (TEAM != WARP) return __syncthreads_or(x);
  __syncwarp();
  return __any_sync(FULL_WARP, x);
}

/* T, w and the pair of the rows; the latter by the last warp, which has the fewest tiles. */
static __device__ inline void rows_sum(const struct border *b, const double *rows, int n)
{
  int warp = threadIdx.x % TEAM / WARP, lane = threadIdx.x % WARP;
  if (warp == WARPS - 1) {
    struct pair pair = pair_unit();
    pair_rows(&pair, rows, lane, n, WARP);
    pair_fold(&pair, WARP);
    if (lane == 0) b->pair[0] = pair.m;
    if (lane == 0) b->pair[1] = __longlong_as_double(pair.e);
  }
#pragma unroll 1
  for (int number = warp; number < TILES; number += WARPS) {
    struct tile t = tile_of(number);
    double sum[SUMS] = {};
    tile_add(sum, t, rows, lane, n);
    int first = tile_fold(sum), i, j;
#pragma unroll
    for (int v = 0; v < TOTALS; v++)
      if (first >= 0 && tile_place(t, first + v, &i, &j)) b->s[j * PITCH + i] = sum[v];
  }
}

/* By the first warp; returns whether the border is ok. */
static __device__ inline int border_finish(const struct arrow_args *a,
                                           const struct arrow_atom *atom, const struct border *b)
{
  struct pair pair, rows = {b->pair[0], __double_as_longlong(b->pair[1])};
  int lane = threadIdx.x % WARP, ok = border_solve(b, &pair);
  double *out = a->out + atom->out + (long long)atom->n * FRAME;
  for (int j = lane; j < BORDER && ok; j += WARP) out[j] = b->step[j];
  pair_times(&rows, pair);
  if (lane == 0) a->found[atom->number].m = rows.m;
  if (lane == 0) a->found[atom->number].e = rows.e;
  return ok;
}

static __device__ inline void system_fail(const struct arrow_args *a, const struct arrow_atom *atom)
{
  int thread = threadIdx.x % TEAM;
  if (thread == 0) a->found[atom->number].not_ok = 1;
  for (int e = thread; e < atom->n * FRAME + BORDER; e += TEAM) a->out[atom->out + e] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    arrow(const __grid_constant__ struct arrow_args a)
{
  extern __shared__ __align__(16) double shared[];
  int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM, failed = 0;
  long long index = (long long)blockIdx.x * TEAMS + team;
  if (index >= a.count) return; /* a whole team, and with one team a block none */
  struct arrow_atom atom = a.atoms[index];
  double *rows = shared + team * arrow_area_reals(FRAME, BORDER, TEAM, a.rows);
  struct border b = border_at(rows + arrow_rows_reals(FRAME, BORDER, TILE, a.rows));
  rows_order(rows, a.in + atom.in, atom.n, 0, 0, atom.n, 0, 1);
  border_order(&b, a.in + atom.in, atom.n);
  async_commit();
  ASYNC_WAIT(0);
  team_sync();
#pragma unroll 1
  for (int q = thread; q < atom.n; q += TEAM) failed |= row_whiten(rows + q * ROW, atom.ridge_t);
  failed = team_any(failed);
  if (failed) {
    system_fail(&a, &atom);
    return;
  }
  rows_sum(&b, rows, atom.n);
  team_sync();
  border_make(&b, atom.ridge_b);
  team_sync();
  failed = thread < WARP && !border_finish(&a, &atom, &b);
  failed = team_any(failed);
#pragma unroll 1
  for (int q = thread; q < atom.n && !failed; q += TEAM)
    failed |= !row_step(rows + q * ROW, b.step, a.out + atom.out + (long long)q * FRAME);
  if (team_any(failed)) system_fail(&a, &atom);
}
