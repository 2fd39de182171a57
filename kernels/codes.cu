/* SPDX-License-Identifier: BSD-3-Clause
 * codes: least-squares codes of rows on their supports (N.4, N.5), residual (N.3r), quality.
 *
 * grid    any number of blocks; block b has rows b, b + blocks and so on
 * block   one warp
 * shared  codes_shared_bytes(): codes, indices of vectors, kept bits; and a tile of the factor, or
 *         slices of vectors, or spans of columns
 * sums    all chains of fma in f64, in the order of the formulas
 *
 * -D MMA (tensor.h), ONE (codes_row.h): 1 if max_m d <= WARP
 *
 * A row with one chunk of vectors is done completely here; for other rows gram.cu runs first.  A
 * state holds the factor of the vectors so far.  A later call can append to it if this call has
 * keep = 1.  If m_old = 0, states need not be initialised.  No states are needed with ONE, m_old =
 * 0 and keep = 0 together. */
#define NONNEGATIVE 0
#include "codes_factor.h"
#include "codes_gram.h"
#include "codes_quality.h"

/* Copy columns of a panel between global and shared memory. */
static __device__ inline void panel_copy(double *to, int to_pitch, const double *from,
                                         int from_pitch, int columns)
{
  int lane = threadIdx.x;
#pragma unroll 1
  for (int j = 0; j <= lane && lane < columns; j++)
    to[j * to_pitch + lane] = from[j * from_pitch + lane];
}

/* The arrays of a row, with `shared` divided as codes_shared_bytes() counts.  The panels of a
 * single chunk are tiles in shared memory. */
static __device__ inline struct solving solving_of(const struct codes_args *a, long long row,
                                                   char *shared)
{
  int chunks = ONE ? 1 : codes_chunks(a->max_m * a->d);
  struct codes_state s = state_of(a, row);
  struct solving w = {};
  double *own = (double *)shared;
  w.r = row_of(a, row, &s, (int *)(own + chunks * WARP));
  w.r.solved = own;
  w.kept = (unsigned *)(w.r.place + chunks * WARP);
  w.tile = (double *)(shared + codes_vectors_bytes(chunks));
  if (!ONE) return w;
  w.r.factor = w.r.rank = w.tile;
  if (a->rho > 0) w.r.rank += WARP * CODES_PITCH;
  return w;
}

/* Load the numbers that earlier calls and gram.cu stored; for a single chunk, do the work of
 * gram.cu.  The state of an earlier call may have more vectors than the old ones of this call. */
static __device__ inline void row_begin(const struct codes_args *a, long long row, char *shared)
{
  struct solving w = solving_of(a, row, shared);
  struct codes_state s = state_of(a, row);
  int end = ONE ? w.r.old : w.r.count;
#pragma unroll 1
  for (int v = threadIdx.x; v < end; v += WARP) w.r.solved[v] = s.y[v];
#pragma unroll 1
  for (int q = threadIdx.x; q < w.r.chunks; q += WARP)
    w.kept[q] = q * WARP < w.r.old ? s.kept[q] & ones(w.r.old - q * WARP) : 0;
  slots_find(&w.r, a->slot + row * a->max_m, a->d);
  if (!ONE) return;
  if (w.r.old < w.r.count) gram_make(&w.r, (float *)w.tile, a->rho);
  panel_copy(w.r.factor, PITCH, s.factor, WARP, w.r.old);
  if (a->rho > 0) panel_copy(w.r.rank, PITCH, s.rank, WARP, w.r.old);
  __syncwarp();
}

static __device__ inline void row_keep(const struct codes_args *a, long long row,
                                       const struct solving *w)
{
  const struct codes_row *r = &w->r;
  struct codes_state s = state_of(a, row);
#pragma unroll 1
  for (int v = threadIdx.x; v < r->count; v += WARP) s.y[v] = r->solved[v];
#pragma unroll 1
  for (int q = threadIdx.x; q < r->chunks; q += WARP) s.kept[q] = w->kept[q];
  if (ONE) panel_copy(s.factor, WARP, r->factor, PITCH, r->count);
  if (ONE && r->rank != r->factor) panel_copy(s.rank, WARP, r->rank, PITCH, r->count);
  __syncwarp();
}

/* Compute y, and the factor (with rho) of the vectors that the rank test keeps. */
static __device__ inline void row_factor(struct solving *w)
{
  w->panels = w->r.factor;
  w->test = w->solve = 1;
  if (w->r.old < w->r.count) factor(w);
}

static __device__ inline void row_write(const struct codes_args *a, long long row, char *shared)
{
  struct solving w = solving_of(a, row, shared);
  codes_write(a, row, &w.r, w.tile);
}

extern "C" __global__ void __launch_bounds__(WARP, CODES_RESIDENT)
    codes(const __grid_constant__ struct codes_args a)
{
  extern __shared__ __align__(16) char shared[];
#pragma unroll 1
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    row_begin(&a, row, shared);
    struct solving w = solving_of(&a, again(row), shared);
    row_factor(&w);
    if (a.keep) row_keep(&a, again(row), &w);
    back_substitute(&w);
    row_write(&a, again(row), shared);
    __syncwarp();
  }
}
