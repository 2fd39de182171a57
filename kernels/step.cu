/* SPDX-License-Identifier: BSD-3-Clause
 * step: the steps of atoms that share no row (N.16): directions, system, frame, trial; and, if the
 * sum of the objectives of an atom's rows does not grow, their new residuals and codes.
 *
 * grid     atoms times blocks of a cluster, 1 to STEP_CLUSTER (1 before 9.0)
 * block    STEP_THREADS
 * shared   step_shared_bytes(D, q, p, named, held)
 * sums     over rows by the tree of (N.0) and the lanes of (N.12), over columns by lane products
 *
 * -D STEP_D  vectors per frame */
#include "launches.h"
#include "step_here.h"
#include "step_system.h"
#include "step_trial.h"

static __device__ inline int cluster_size(void)
{
#if __CUDA_ARCH__ >= 900
  int size;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  return size;
#else
  return 1;
#endif
}

/* Take `count` reals from *from, and advance it. */
static __device__ inline double *take(double **from, int count)
{
  double *at = *from;
  *from += count;
  return at;
}

/* Thread 0: set the atom and its rows, and lay out the arrays. */
static __device__ inline void step_lay(struct step *s, const struct step_args *a, double *shared)
{
  int q = a->q, k = q * D, pitch = step_pitch(a->p), size = cluster_size();
  const struct step_item *item = a->items + blockIdx.x / size;
  s->a = *a;
  s->size = size;
  s->index = blockIdx.x / size;
  s->rank = blockIdx.x % size;
  s->first_entry = __ldcg(&item->first);
  s->atom = __ldcg(&item->atom);
  s->at = __ldcg(&item->at);
  s->n = __ldcg(&item->n);
  s->lo = (int)((long long)s->n * s->rank / size);
  s->hi = (int)((long long)s->n * (s->rank + 1) / size);
  s->count = s->held = s->shares = 0;
  s->pitch = pitch;
  s->kept = 0;
  s->first = -1;
  s->u_old = take(&shared, D * pitch);
  s->u_new = take(&shared, D * pitch);
  s->e = take(&shared, q * pitch);
  s->rows = take(&shared, a->held * pitch); /* up to here pairs are aligned */
  s->sums = take(&shared, step_sums_reals(D, k));
  s->added = take(&shared, step_sum_rows(D, q) * step_sum_pitch(D, q));
  s->parts = take(&shared, D + q + 1);
  s->uu = take(&shared, D * D);
  s->ue = take(&shared, k);
  s->ee = take(&shared, q * q);
  s->factor = take(&shared, D * D);
  s->pivot = take(&shared, D);
  s->tt = take(&shared, D * D);
  s->h = take(&shared, k);
  s->l_new = take(&shared, D * D);
  s->schur = take(&shared, k * (k + 2));
  s->whole = take(&shared, k * (k + 2));
  s->diagonal = take(&shared, k);
  s->beta = take(&shared, k);
  s->scalar = take(&shared, STEP_SCALARS);
  s->total = take(&shared, STEP_THREADS);
  s->start = (int *)take(&shared, STEP_GROUPS / 2 + 1);
  s->t = take(&shared, a->named * D);
  s->t_new = take(&shared, a->named * D);
  s->weight = take(&shared, a->named);
  s->entry = (long long *)take(&shared, a->named);
  s->row = (int *)take(&shared, a->named); /* and s->late */
  s->late = s->row + a->named;
  s->width = here_width(s, D * a->p);
  s->is_here = here_is_room(s);
  here_begin(s);
}

/* Begin an atom.  If `early`, held rows are copied while the previous launch may still run.  The
 * rows that it changes are copied again after its end.  All earlier launches have ended, because a
 * launch lets the next one begin only after its own launches_wait().  Copies of single reals could
 * read old data from the L1 cache, so rows are copied early only if p is even. */
static __device__ inline void step_open(struct step *s, const struct step_args *a, double *shared)
{
  int early = a->turn > 0 && a->p % 2 == 0;
  if (threadIdx.x == 0) step_lay(s, a, shared);
  __syncthreads();
  const double *frame = a->frames + (long long)s->atom * D * a->p;
#pragma unroll 1
  for (int v = threadIdx.x; v < D * a->p; v += THREADS)
    s->u_old[v / a->p * s->pitch + v % a->p] = __ldcg(frame + v);
  groups_find(s);
  __syncthreads();
  if (s->is_here && threadIdx.x < WARP) {
    here_partition(s);
    __syncwarp();
    if (threadIdx.x == 0) here_find(s);
  }
  __syncthreads();
  if (s->lo < s->hi) rows_name(s, s->lo);
  struct stage first = stage_of(s);
  if (!s->is_here) stage_fetch(s, &first, 0, -1);
  cluster_barrier(); /* all blocks have begun, so their shared memory may be used */
  if (early) {
    rows_order(s, 0);
    rows_conflicts_find(s);
    rows_wait();
  }
  launches_wait();
  launch_next();
  rows_order(s, early);
}

/* A warp subtracts from v its part along a unit vector; `product` is their inner product. */
static __device__ inline void part_remove(double *v, const double *unit, double product, int p)
{
  v = (double *)in_shared(v);
  unit = in_shared(unit);
  __syncwarp(); /* all lanes have read v for its product */
#pragma unroll 4
  for (int c = threadIdx.x % WARP; c < p; c += WARP) v[c] = fma(-product, unit[c], v[c]);
  __syncwarp();
}

/* v: the memory of the next direction; u and e: the frame and the directions to which v is made
 * orthogonal.  The pointers are copied here so that they are read once. */
struct next_direction {
  const double *u, *e;
  double *v, *parts;
  int p, pitch, kept;
};

/* Subtract from v its parts along the frame and the directions.  Each warp computes some of the
 * parts.  If is_first, the square of v is computed too, as the last part. */
static __device__ inline void parts_remove(const struct next_direction *d, int is_first)
{
  enum { AHEAD = 2 };
  int units = D + d->kept;
#pragma unroll 1
  for (int at = threadIdx.x / WARP; at < units + is_first; at += WARPS) {
    const double *unit = at < D ? d->u + at * d->pitch : d->e + (at - D) * d->pitch; /* last: v */
    double product = lane_product(unit, d->v, d->p);
    if (threadIdx.x % WARP == 0) d->parts[at] = product;
  }
  __syncthreads();
#pragma unroll 1
  for (int c = threadIdx.x; c < d->p; c += THREADS) {
    double x = d->v[c];
#pragma unroll
    for (int m = 0; m < D; m++) x = fma(-d->parts[m], d->u[m * d->pitch + c], x);
#pragma unroll 1
    for (int first = 0; first < d->kept; first += AHEAD) {
      double part[AHEAD], e[AHEAD];
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (first + r < d->kept) {
          part[r] = d->parts[D + first + r];
          e[r] = d->e[(first + r) * d->pitch + c];
        }
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (first + r < d->kept) x = fma(-part[r], e[r], x);
    }
    d->v[c] = x;
  }
}

/* Sum m of a turn (sums_find()) is a candidate: it becomes the next direction, or is dropped. */
static __device__ __noinline__ void candidate_offer(struct step *shared, int turn, int m)
{
  struct step *s = step_shared(shared);
  double *scalar = (double *)in_shared(s->scalar), *e = (double *)in_shared(s->e);
  int p = s->a.p, pitch = s->pitch, kept = s->kept;
  struct next_direction d = {
      in_shared(s->u_old), e, e + kept * pitch, (double *)in_shared(s->parts), p, pitch, kept};
  const double *sum = (s->is_here ? here_sums(s) : sums_of(s, turn)) + m * p;
#pragma unroll 1
  for (int c = threadIdx.x; c < p; c += THREADS) d.v[c] = s->is_here ? sum[c] : __ldcg(sum + c);
  __syncthreads();
  parts_remove(&d, 1);
  double square = d.parts[D + kept];
  __syncthreads();
  parts_remove(&d, 0);
  double before = sqrt(square);
  __syncthreads();
  if (threadIdx.x < WARP) {
    square = lane_product(d.v, d.v, p);
    if (threadIdx.x == 0) scalar[NORM] = square;
  }
  __syncthreads();
  double norm = sqrt(scalar[NORM]);
  int is_kept = norm > 9.094947017729282e-13 * before && is_finite(norm); /* 2^-40 */
#pragma unroll 1
  for (int c = threadIdx.x; c < p && is_kept; c += THREADS) d.v[c] = d.v[c] / norm;
  if (threadIdx.x == 0) s->kept += is_kept;
  __syncthreads();
}

/* The sums of a turn, weighted by codes (j < 0) or by products with direction j. */
static __device__ inline void sums_find(struct step *s, int j, int turn)
{
  if (s->is_here) {
    columns_here(s, turn, j);
    return;
  }
  columns_sum(s, j, sums_of(s, turn), turn == 0);
  cluster_barrier();
}

/* Find the directions, and the products of rows with them. */
static __device__ inline void directions_find(struct step *s)
{
  int q = s->a.q, turn = 0;
  if (s->is_here) rows_wait();
  sums_find(s, -1, turn);
  if (!s->is_here) rows_wait();
#pragma unroll 1
  for (int m = 0; m < D && s->kept < q; m++) candidate_offer(s, turn, m);
#pragma unroll 1
  for (int j = 0; j == 0 || j < s->kept; j++) {
    products_find(s, j);
    if (s->held < s->count) far_products(s, j);
    if (!s->is_here) cluster_barrier();
    if (j >= s->kept || s->kept == q) continue;
    sums_find(s, j, ++turn);
    candidate_offer(s, turn, 0);
  }
  cluster_barrier(); /* the numbers that all rows contribute to sums are stored */
}

/* A warp subtracts from vector m of the new frame its parts along the vectors before it, and stores
 * the squares of its norm before and after. */
static __device__ inline void frame_part(struct step *s, int m)
{
  int p = s->a.p, pitch = s->pitch;
  double *v = s->u_new + m * pitch, before = lane_product(v, v, p), square = before;
#pragma unroll 1
  for (int pass = 0; pass < 2; pass++)
#pragma unroll 1
    for (int l = 0; l < m; l++)
      part_remove(v, s->u_new + l * pitch, lane_product(s->u_new + l * pitch, v, p), p);
  if (m) square = lane_product(v, v, p);
  if (threadIdx.x == 0) s->scalar[SQUARE] = before;
  if (threadIdx.x == 0) s->scalar[NORM] = square;
}

/* Make the orthonormal frame after the step.  Returns 0 if its vectors are nearly dependent or not
 * finite, and 1 otherwise. */
static __device__ inline int frame_make(struct step *s)
{
  int p = s->a.p, pitch = s->pitch, kept = s->kept, bad = 0;
#pragma unroll
  for (int m = 0; m < D; m++) {
    const double *u = in_shared(s->u_old) + m * pitch, *e = in_shared(s->e),
                 *beta = in_shared(s->beta) + m;
    double *v = (double *)in_shared(s->u_new) + m * pitch;
#pragma unroll 1
    for (int c = threadIdx.x; c < p; c += THREADS) {
      double acc = u[c];
#pragma unroll 4
      for (int j = 0; j < kept; j++) acc = fma(e[j * pitch + c], beta[j * D], acc);
      v[c] = acc;
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int m = 0; m < D; m++) {
    double *v = s->u_new + m * pitch;
    if (threadIdx.x < WARP) frame_part(s, m);
    __syncthreads();
    double before = sqrt(s->scalar[SQUARE]), norm = sqrt(s->scalar[NORM]);
    if (!(norm > 9.5367431640625e-07 * before)) return 0; /* 2^-20 */
#pragma unroll 1
    for (int c = threadIdx.x; c < p; c += THREADS) {
      v[c] = v[c] / norm;
      bad |= !is_finite(v[c]);
    }
    __syncthreads();
  }
  return !__syncthreads_or(bad);
}

/* Sum the objectives of the rows after the step.  Returns 1 if the sum has not grown, else 0. */
static __device__ inline int try_evaluate(struct step *s, int turn)
{
  enum { AHEAD = 16 };
  double done = 0;
  int lane = threadIdx.x;
#pragma unroll 1
  for (int first = 0; first < s->n && threadIdx.x < WARP; first += STEP_SEGMENT_ROWS) {
    int left = s->n - first, count = left < STEP_SEGMENT_ROWS ? left : STEP_SEGMENT_ROWS;
    double acc = 0;
#pragma unroll 1
    for (int i = lane; i < count; i += AHEAD * STEP_LANES) {
      double value[AHEAD];
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        value[r] = __ldcg(try_of(s, turn, first + min_of(i + r * STEP_LANES, count - 1)));
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (i + r * STEP_LANES < count) acc += value[r];
    }
    acc = lanes_total(acc);
    done = first ? done + acc : acc;
  }
  return scalar_broadcast(s, AFTER, done, threadIdx.x == 0) <= s->scalar[BEFORE];
}

/* Solve and try until a step is accepted, or there is no next attempt. */
static __device__ inline void step_take(struct step *s, struct step_found *found)
{
  struct ridges addition = {0, 0};
#pragma unroll 1
  for (int turn = 0;;) {
    system_solve(s, &addition, found);
    if (found->status != STATUS_OK) return;
    if (frame_make(s) && rows_try(s, turn)) {
      cluster_barrier();
      found->accepted = try_evaluate(s, turn);
      if (found->accepted) rows_keep(s, turn);
      if (found->accepted) return;
      turn++;
    }
    struct ridges unit = units_find(s), first = {1e-3 * unit.t, 1e-3 * unit.b};
    if (found->retries + 1 > MAX_RETRIES || !ridges_raise(&addition, first)) return;
    found->retries++;
  }
}

extern "C" __global__ void __launch_bounds__(STEP_THREADS, 1)
    step(const __grid_constant__ struct step_args a)
{
  extern __shared__ __align__(16) double shared[];
  __shared__ struct step s;
  static_assert(sizeof s <= STEP_STRUCT_BYTES, "the capacity counts on it");
  struct step_found found = {};
  step_open(&s, &a, shared);
  directions_find(&s);
  step_take(&s, &found);
  if (s.rank != 0) return;
  found.m = s.scalar[PAIR_M];
  found.e = __double_as_longlong(s.scalar[PAIR_E]);
  double *frame = a.frames + (long long)s.atom * D * a.p;
#pragma unroll 1
  for (int v = threadIdx.x; v < D * a.p && found.accepted; v += THREADS)
    frame[v] = s.u_new[v / a.p * s.pitch + v % a.p];
  if (threadIdx.x == 0) a.found[s.atom] = found;
}
