/* SPDX-License-Identifier: BSD-3-Clause
 * One row of codes: its vectors, its factor and its workspace.  A chunk is 32 vectors; a panel is
 * the rows of a factor for one chunk.
 *
 * -D ONE  1: at most one chunk of vectors, whose panel is in shared memory; 0: panels are in global
 *         memory
 * The including file defines NONNEGATIVE: 1 for codes of (N.5n). */
#ifndef CODES_ROW_H
#define CODES_ROW_H

#include "forms.h"

#define FULL_WARP 0xffffffffu

/* Reals between columns of a panel. */
enum { PITCH = ONE ? CODES_PITCH : WARP };

struct codes_row {
  const float *x;        /* [p] */
  const float *atoms;    /* of codes_args */
  int p, old, count;     /* columns; vectors that are already solved; all vectors */
  int chunks;            /* of all vectors */
  double *factor, *rank; /* panels; rank: without rho; the same as factor if rho is 0 */
  double *norms;         /* [count] squared norms of new vectors; ONE: only if NONNEGATIVE */
  double *solved;        /* [count] x . vector, then y, then the codes */
  int *place;            /* [count] shared: index of each vector in atoms */
};

/* The state of a row in global memory.  If NONNEGATIVE, `factor` is the Gram matrix, which is
 * stored by rows if ONE; y has the products of the row and the vectors; and `rank` is workspace
 * after all other arrays.  With ONE this workspace does not exist. */
struct codes_state {
  double *factor, *rank, *y, *norms;
  unsigned *kept;
};

static __device__ inline struct codes_state state_of(const struct codes_args *a, long long row)
{
  int chunks = ONE ? 1 : codes_chunks(a->max_m * a->d);
  double *at = (double *)(a->states + row * a->state_bytes);
  struct codes_state s = {at, at};
  at += codes_panel_start(chunks);
  if (!NONNEGATIVE && a->rho > 0) s.rank = at;
  if (!NONNEGATIVE && a->rho > 0) at += codes_panel_start(chunks);
  if (NONNEGATIVE) s.rank = (double *)((char *)s.factor + codes_state_bytes(chunks * WARP, 0));
  s.y = at;
  s.norms = at + chunks * WARP;
  s.kept = (unsigned *)(s.norms + chunks * WARP);
  return s;
}

/* A row whose panels, norms and products are in global memory. */
static __device__ inline struct codes_row row_of(const struct codes_args *a, long long row,
                                                 const struct codes_state *s, int *place)
{
  struct codes_row r = {a->rows + row * a->p, a->atoms, a->p, a->m_old * a->d, a->m_new * a->d};
  r.chunks = codes_chunks(r.count);
  r.factor = s->factor;
  r.rank = s->rank;
  r.norms = s->norms;
  r.solved = s->y;
  r.place = place;
  return r;
}

/* Returns `row`; the compiler does not know that it is the same number.  So it computes values that
 * depend on the result again, and does not keep earlier ones in registers. */
static __device__ inline long long again(long long row)
{
  asm volatile("" : "+l"(row));
  return row;
}

/* The lane.  Nonnegative codes in one chunk have hardly enough registers, so they compute it
 * again. */
static __device__ inline int lane_own(void)
{
  return NONNEGATIVE && ONE ? (int)again(threadIdx.x) : (int)threadIdx.x;
}

/* A word whose lowest `count` bits are 1; count >= 1. */
static __device__ inline unsigned ones(int count)
{
  return count < WARP ? ~(~0u << count) : ~0u;
}

/* Fill in r->place.  Called by all threads of the block. */
static __device__ inline void slots_find(const struct codes_row *r, const int *slot, int d)
{
  int thread = threadIdx.y * WARP + threadIdx.x, threads = blockDim.y * WARP;
  for (int v = thread; v < r->count; v += threads)
    r->place[v] = d == 1 ? slot[v] : slot[v / d] * d + v % d;
  __syncthreads();
}

static __device__ inline const float *vector_of(const struct codes_row *r, int v)
{
  return r->atoms + (long long)r->place[v] * r->p;
}

/* The number of vectors in a chunk. */
static __device__ inline int width_of(const struct codes_row *r, int chunk)
{
  int left = r->count - chunk * WARP;
  return left < WARP ? left : WARP;
}

/* The tile at the columns of chunk `column` in the panel of `chunk`. */
static __device__ inline double *tile_of(double *panels, int chunk, int column)
{
  return panels + (codes_panel_start(chunk) + column * WARP * PITCH);
}

#endif
