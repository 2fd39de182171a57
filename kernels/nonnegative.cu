/* SPDX-License-Identifier: BSD-3-Clause
 * nonnegative: nonnegative codes of rows on their supports (N.5n), residual (N.3r), quality.
 *
 * grid    any number of blocks; block b has rows b, b + blocks and so on
 * block   one warp
 * shared  nonnegative_shared_bytes(): for each vector a real, an index and a kept bit, as in
 *         codes.cu, and four reals and three bits (nonnegative_set.h); and a tile of the factor, or
 *         slices of vectors, or spans of columns
 * sums    all chains of fma in f64, in the order of the formulas.  A slope and its size (the sum of
 *         the magnitudes of its terms) are made in one lane
 *
 * -D MMA (codes_gram.h), ONE (codes_row.h): 1 if max_m <= WARP; d is 1
 *
 * If rows may have more than one chunk of vectors, gram.cu runs first, with rho = 0.  A state holds
 * the Gram matrix and the row's products.  A later call can append to them if this call has keep =
 * 1.  Each call finds its sets anew.  If m_old = 0, states need not be initialised.  No states are
 * needed with ONE, m_old = 0 and keep = 0 together. */
#define NONNEGATIVE 1
#include "nonnegative_set.h"
#include "codes_quality.h"

/* Compute the new entries of a row (for a single tile). */
static __device__ inline void row_begin(const struct codes_args *a, long long row, char *shared)
{
  struct codes_state s = state_of(a, row);
  struct set_arrays n = arrays_of(a, shared);
  struct solving w = solving_of(a, row, shared, &n, &s);
  slots_find(&w.r, a->slot + row * a->max_m, a->d);
  w.r.solved = n.b;
  if (ONE && w.r.old < w.r.count) gram_make(&w.r, (float *)w.tile, 0);
}

/* Load the entries that earlier calls stored, and store the new entries for later calls. */
static __device__ inline void tile_join(const struct codes_args *a, long long row, char *shared)
{
  struct codes_state s = state_of(a, row);
  struct set_arrays n = arrays_of(a, shared);
  struct solving w = solving_of(a, row, shared, &n, &s);
  int lane = lane_own(), old = a->m_old, count = a->m_new;
#pragma unroll 4
  for (int v = 0; v < old; v++)
    if (lane <= v) w.tile[v * PITCH + lane] = s.factor[v * WARP + lane];
  if (lane < old) n.b[lane] = s.y[lane];
  __syncwarp();
  if (lane < count) n.norms[lane] = w.tile[lane * PITCH + lane];
  if (!a->keep) return;
#pragma unroll 4
  for (int v = old; v < count; v++)
    if (lane <= v) s.factor[v * WARP + lane] = w.tile[v * PITCH + lane];
  if (lane >= old && lane < count) s.y[lane] = n.b[lane];
}

/* Load the products and norms of a row with several tiles; gram.cu has stored them. */
static __device__ inline void products_join(const struct codes_args *a, long long row, char *shared)
{
  struct codes_state s = state_of(a, row);
  struct set_arrays n = arrays_of(a, shared);
  for (int v = threadIdx.x; v < a->m_new; v += WARP) {
    n.b[v] = s.y[v];
    n.norms[v] = s.norms[v];
  }
}

/* Add to b the pull of each code toward the value of its atom in a->toward (N.50). */
static __device__ inline void products_draw(const struct codes_args *a, const struct solving *w,
                                            const struct set_arrays *n)
{
#pragma unroll 1
  for (int v = threadIdx.x; v < w->r.count; v += WARP)
    n->b[v] = fma(a->rho, (double)a->toward[w->r.place[v]], n->b[v]);
  __syncwarp();
}

static __device__ inline void row_solve(const struct codes_args *a, long long row, char *shared)
{
  struct codes_state s = state_of(a, row);
  struct set_arrays n = arrays_of(a, shared);
  struct solving w = solving_of(a, row, shared, &n, &s);
  w.r.old = 0;
  if (a->toward) products_draw(a, &w, &n);
  set_search(&w, &n, s.factor, a->rho);
}

static __device__ inline void row_write(const struct codes_args *a, long long row, char *shared)
{
  struct codes_state s = state_of(a, row);
  struct set_arrays n = arrays_of(a, shared);
  struct solving w = solving_of(a, row, shared, &n, &s);
#pragma unroll 1
  for (int v = threadIdx.x; v < w.r.count; v += WARP) w.r.solved[v] = n.x[v];
  __syncwarp();
  codes_write(a, row, &w.r, w.tile);
}

extern "C" __global__ void __launch_bounds__(WARP, CODES_RESIDENT)
    nonnegative(const __grid_constant__ struct codes_args a)
{
  extern __shared__ __align__(16) char shared[];
#pragma unroll 1
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    row_begin(&a, row, shared);
    if (ONE)
      tile_join(&a, again(row), shared);
    else
      products_join(&a, again(row), shared);
    __syncwarp();
    row_solve(&a, again(row), shared);
    row_write(&a, again(row), shared);
    __syncwarp();
  }
}
