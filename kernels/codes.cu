/* SPDX-License-Identifier: BSD-3-Clause
 * codes: least-squares codes of rows on their supports (N.4, N.5), residual (N.3r), quality.
 *
 * grid    any number of blocks; block b has rows b, b + blocks and so on
 * block   one warp
 * shared  codes_shared_bytes(): slices of vectors, the panel of a small factor, spans of columns
 * sums    all chains of fma in f64, in the order that the formulas name
 *
 * -D MMA (codes_gram.h)
 *
 * A row's vectors are taken in chunks of 32.  A state holds the factor of the vectors so far, so
 * that a later call appends to it. */
#include "codes_factor.h"
#include "codes_gram.h"
#include "codes_quality.h"

/* A row's parts, `shared` cut as codes_shared_bytes() counts, the state as codes_state_bytes(). */
static __device__ inline struct codes_row row_of(const struct codes_args *a, long long row,
                                                 char *shared)
{
  int most = a->m_most * a->d, panels = (most + WARP - 1) / WARP;
  int vectors = codes_slice_vectors(most);
  double *state = (double *)(a->states + (a->keep ? row : blockIdx.x) * a->state_bytes);
  struct codes_row r = {a->rows + row * a->p, a->atoms, a->slot + row * a->m_most, a->d, a->p};
  r.old = a->m_old * a->d;
  r.count = a->m_new * a->d;
  r.slice_vectors = vectors;
  r.slices = (float *)shared;
  r.spans = (double *)(shared + 2 * vectors * CODES_STRIDE * 4);
  r.factor = state;
  state += codes_panel_start(panels);
  r.rank = a->rho > 0 ? state : r.factor;
  if (a->rho > 0) state += codes_panel_start(panels);
  r.codes = state;
  r.kept = (unsigned *)(state + panels * WARP);
  return r;
}

/* A factor of one panel is worked on in shared memory; `state` is where it stays. */
static __device__ inline double *panel_fetch(struct codes_row *r, double *shared)
{
  double *state = r->factor;
  for (int i = threadIdx.x; i < r->old * CODES_HEIGHT; i += WARP) shared[i] = state[i];
  if (r->rank == r->factor) r->rank = shared;
  r->factor = shared;
  __syncwarp();
  return state;
}

static __device__ inline void panel_keep(const struct codes_row *r, double *state)
{
  for (int i = threadIdx.x; i < r->count * CODES_HEIGHT; i += WARP) state[i] = r->factor[i];
}

static __device__ inline void row_solve(const struct codes_row *r, double rho)
{
  int chunks = (r->count + WARP - 1) / WARP;
  for (int chunk = r->old / WARP; chunk < chunks && r->old < r->count; chunk++) {
    for (int right = 0; right < chunk; right++) gram(r, chunk, right, 0);
    gram(r, chunk, chunk, 1);
    chunk_factor(r, chunk, rho);
  }
  for (int chunk = chunks - 1; chunk >= 0; chunk--) chunk_back(r, chunk);
}

static __device__ inline void codes_write(const struct codes_row *r, float *out)
{
  for (int v = threadIdx.x; v < r->count; v += WARP) out[v] = (float)r->codes[v];
}

extern "C" __global__ void __launch_bounds__(WARP, 12)
    codes(const __grid_constant__ struct codes_args a)
{
  extern __shared__ __align__(16) char shared[];
  int small = a.m_most * a.d <= WARP;
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    struct codes_row r = row_of(&a, row, shared);
    double *state = small ? panel_fetch(&r, r.spans + 3 * CODES_SPAN) : 0;
    row_solve(&r, a.rho);
    if (small && a.keep) panel_keep(&r, state);
    if (a.residual) residual_write(&r, a.residual + row * a.p);
    if (a.codes) codes_write(&r, a.codes + row * r.count);
    if (a.quality) quality_write(&r, a.quality + row);
    __syncwarp();
  }
}
