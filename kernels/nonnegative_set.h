/* SPDX-License-Identifier: BSD-3-Clause
 * The active-set method of nonnegative codes (N.5n), one warp per row.  A lane has vectors lane,
 * lane + 32 and so on.
 * The codes of a set are solved with the factor of codes_factor.h.  The factor has no columns of
 * vectors outside of the set. */
#ifndef NONNEGATIVE_SET_H
#define NONNEGATIVE_SET_H

#include "codes_factor.h"

/* A slope must exceed the sum of the magnitudes of its terms times this; as in model/codes.h. */
#define SLOPE_TOLERANCE 0x1p-40

/* Arrays in shared memory that codes.cu does not have.  Reals: [32 chunks]; sets: [chunks]. */
struct set_arrays {
  double *b, *norms;  /* products with the row; squared norms */
  double *x, *try_x;  /* codes of the accepted set, and of the trial set */
  unsigned *in, *set; /* the accepted set, and the trial set; one bit per vector */
  unsigned *refused;  /* vectors that brought no gain */
};

static __device__ inline struct set_arrays arrays_of(const struct codes_args *a, char *shared)
{
  int chunks = ONE ? 1 : codes_chunks(a->max_m), reals = chunks * WARP;
  double *at = (double *)(shared + codes_vectors_bytes(chunks));
  unsigned *bits = (unsigned *)(at + 4 * reals);
  struct set_arrays n = {at,   at + reals,    at + 2 * reals,   at + 3 * reals,
                         bits, bits + chunks, bits + 2 * chunks};
  return n;
}

/* The arrays of a row.  If there is a single chunk, its panels are in the tile in shared memory. */
static __device__ inline struct solving solving_of(const struct codes_args *a, long long row,
                                                   char *shared, const struct set_arrays *n,
                                                   const struct codes_state *s)
{
  int chunks = ONE ? 1 : codes_chunks(a->max_m);
  double *own = (double *)shared;
  struct solving w = {};
  w.r = row_of(a, row, s, (int *)(own + chunks * WARP));
  w.r.solved = own;
  w.r.norms = n->norms;
  w.kept = (unsigned *)(w.r.place + chunks * WARP);
  w.set = n->set;
  w.tile = (double *)(shared + nonnegative_vectors_bytes(chunks));
  w.panels = w.r.factor = w.r.rank = ONE ? w.tile : s->rank;
  w.test = w.solve = 1;
  return w;
}

/* The number of chunks; always 1 in the single-chunk form, also for a row without vectors. */
static __device__ inline int chunks_of(const struct solving *w)
{
  return ONE ? 1 : w->r.chunks;
}

/* A word with a bit for each vector of a chunk. */
static __device__ inline unsigned ones_of(const struct solving *w, int chunk)
{
  return ones(w->r.count - chunk * WARP);
}

static __device__ inline double least(double value)
{
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2)
    value = fmin(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
}

/* Work panels <- the lower triangle of the Gram matrix with rho on its diagonal; zeros past the
 * last vector. */
static __device__ inline void panels_fill(const struct solving *w, const double *gram)
{
  int lane = lane_own();
#pragma unroll 1
  for (int q = 0; q < w->r.chunks; q++) {
    int v = q * WARP + lane, start = codes_panel_start(q) + lane;
#pragma unroll 4
    for (int k = 0; k < (q + 1) * WARP; k++) {
      int at = start + k * WARP;
      if (k <= v) w->panels[at] = v >= w->r.count ? 0 : k < v ? gram[at] : gram[at] + w->rho;
    }
  }
}

/* solved <- the solution for the vectors in the trial set; other entries are undefined.  A vector
 * whose pivot is too small is removed from the set. */
static __device__ inline void set_solve(struct solving *w, const struct set_arrays *n,
                                        const double *gram)
{
  int lane = lane_own(), chunks = chunks_of(w);
  if (!ONE) panels_fill(w, gram);
#pragma unroll 1
  for (int q = 0; q < chunks; q++) w->r.solved[q * WARP + lane] = n->b[q * WARP + lane];
  if (lane < chunks) w->kept[lane] = 0;
  __syncwarp();
  factor(w);
  back_substitute(w);
  if (lane < chunks) n->set[lane] = w->kept[lane];
  __syncwarp();
}

/* On the way from x to z, which is not positive: the fraction at which 0 is reached. */
static __device__ inline double reach(double x, double z)
{
  return x > 0 ? x / (x - z) : 0;
}

/* One step of settling: move try_x towards `solved` as far as all entries stay >= 0.  Vectors whose
 * entries become 0 leave the trial set.  Returns 1 if try_x reached `solved`, and 0 otherwise. */
static __device__ inline int set_settle(const struct solving *w, const struct set_arrays *n)
{
  int lane = lane_own(), chunks = chunks_of(w), blocked = 0;
  double step = 1;
#pragma unroll 1
  for (int q = 0; q < chunks; q++) {
    int v = q * WARP + lane;
    double z = w->r.solved[v];
    if (!(n->set[q] >> lane & 1) || z > 0) continue;
    blocked = 1;
    step = fmin(step, reach(n->try_x[v], z));
  }
  blocked = __any_sync(FULL_WARP, blocked);
  if (blocked) step = least(step);
#pragma unroll 1
  for (int q = 0; q < chunks; q++) {
    int v = q * WARP + lane, in = n->set[q] >> lane & 1;
    double x = n->try_x[v], z = w->r.solved[v];
    int leaves = in && !(z > 0) && !(reach(x, z) > step);
    unsigned left = __ballot_sync(FULL_WARP, leaves);
    n->try_x[v] = !in || leaves ? 0 : blocked ? fmax(fma(step, z - x, x), 0.0) : z;
    if (lane == 0) n->set[q] &= ~left;
  }
  __syncwarp();
  return !blocked;
}

/* Accept the trial set. */
static __device__ inline void set_accept(const struct solving *w, const struct set_arrays *n)
{
  int lane = lane_own();
#pragma unroll 1
  for (int q = 0; q < chunks_of(w); q++) n->x[q * WARP + lane] = n->try_x[q * WARP + lane];
  if (lane < chunks_of(w)) n->in[lane] = n->set[lane];
  if (lane < chunks_of(w)) n->refused[lane] = 0;
  __syncwarp();
}

/* Does the trial set have a larger gain than the accepted set?  The gain is a chain of b_j x_j over
 * the set.  Codes outside of a set are 0. */
static __device__ inline int is_gain(const struct solving *w, const struct set_arrays *n)
{
  double before = 0, now = 0;
#pragma unroll 4
  for (int v = 0; v < w->r.count; v++) {
    double b = n->b[v], x = n->x[v], try_x = n->try_x[v];
    double more = fma(b, x, before), more_now = fma(b, try_x, now);
    before = x > 0 ? more : before;
    now = try_x > 0 ? more_now : now;
  }
  __syncwarp();
  return now > before;
}

/* Entry (i, j) of the Gram matrix, i != j. */
static __device__ inline double gram_entry(const struct solving *w, const double *gram, int i,
                                           int j)
{
  int high = i > j ? i : j, low = i > j ? j : i;
  if (ONE) return w->tile[high * PITCH + low];
  return gram[codes_panel_start(high / WARP) + low * WARP + high % WARP];
}

/* A vector that may join the accepted set (-1: none), and the slope of the objective along it. */
struct joining {
  double slope;
  int vector;
};

/* Replace *best, the lane's best vector, by vector v if the slope of v is larger and large enough.
 * Calls have ascending v. */
static __device__ inline void vector_compare(const struct solving *w, const struct set_arrays *n,
                                             const double *gram, int v, struct joining *best)
{
  double slope = n->b[v], size = fabs(slope);
#pragma unroll 1
  for (int q = 0; q < chunks_of(w); q++)
#pragma unroll 1
    for (unsigned left = n->in[q]; left; left &= left - 1) {
      int k = q * WARP + __ffs(left) - 1;
      double x = n->x[k], g = gram_entry(w, gram, v, k);
      slope = fma(-g, x, slope);
      size = fma(fabs(g), x, size);
    }
  if (!(slope > SLOPE_TOLERANCE * size && slope > best->slope)) return;
  best->slope = slope;
  best->vector = v;
}

/* Of the vectors that are neither in the accepted set nor refused: the one with the steepest slope,
 * and the first of several such.  Returns -1 if no slope is large enough. */
static __device__ inline int set_next(const struct solving *w, const struct set_arrays *n,
                                      const double *gram)
{
  struct joining best = {0, -1};
  int lane = lane_own();
#pragma unroll 1
  for (int q = 0; q < chunks_of(w); q++) {
    unsigned out = ~(n->in[q] | n->refused[q]) & ones_of(w, q);
    if (out >> lane & 1) vector_compare(w, n, gram, q * WARP + lane, &best);
  }
  __syncwarp();
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) {
    double slope = __shfl_xor_sync(FULL_WARP, best.slope, step);
    int vector = __shfl_xor_sync(FULL_WARP, best.vector, step);
    if (slope > best.slope || (slope == best.slope && (unsigned)vector < (unsigned)best.vector)) {
      best.slope = slope;
      best.vector = vector;
    }
  }
  return best.vector;
}

/* Set up a trial: the accepted set and one more vector, which counts as refused until a set is
 * accepted. */
static __device__ inline void set_try(const struct solving *w, const struct set_arrays *n,
                                      int vector)
{
  int lane = lane_own();
#pragma unroll 1
  for (int q = 0; q < chunks_of(w); q++) n->try_x[q * WARP + lane] = n->x[q * WARP + lane];
  if (lane < chunks_of(w)) {
    unsigned one = lane == vector / WARP ? 1u << vector % WARP : 0;
    n->set[lane] = n->in[lane] | one;
    n->refused[lane] |= one;
  }
  __syncwarp();
}

/* Start with all vectors, so that the rank is tested, and with codes of 0. */
static __device__ inline void set_begin(const struct solving *w, const struct set_arrays *n)
{
  int lane = lane_own();
#pragma unroll 1
  for (int q = 0; q < chunks_of(w); q++) n->try_x[q * WARP + lane] = 0;
  if (lane < chunks_of(w)) n->set[lane] = ones_of(w, lane);
  __syncwarp();
}

/* n->x <- the codes.  All systems are solved in one loop, so that the code of set_solve() exists
 * only once.  The first solution tests the rank: the vectors that it keeps are the first set.  If
 * rho is 0, it is also the first solution for this set.  Then follow steps of settling, for the
 * first set and for trial sets. */
static __device__ inline void set_search(struct solving *w, const struct set_arrays *n,
                                         const double *gram, double rho)
{
  enum { RANK, FIRST, TRY } of = RANK;
  set_begin(w, n);
#pragma unroll 1
  for (;;) {
    w->rho = of == RANK ? 0 : rho;
    set_solve(w, n, gram);
    if (of == RANK) {
      of = FIRST;
      if (rho > 0) continue;
    }
    if (!set_settle(w, n)) continue;
    if (of == FIRST || is_gain(w, n)) set_accept(w, n);
    of = TRY;
    int next = set_next(w, n, gram);
    if (next < 0) return;
    set_try(w, n, next);
  }
}

#endif
