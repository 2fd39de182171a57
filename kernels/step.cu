/* SPDX-License-Identifier: BSD-3-Clause
 * step: the steps of atoms that share no row (N.16): directions, system, frame, trial, and where
 * the rows do not become worse, their residuals and codes.
 *
 * grid     atoms times blocks of a cluster, 1 to STEP_CLUSTER (1 before 9.0)
 * block    STEP_THREADS
 * shared   step_shared_bytes(D, q, p, capacity)
 * sums     over rows by the tree of (N.0) and the lanes of (N.12), over columns in chains
 *
 * -D STEP_D  vectors of a frame */
#include "step_columns.h"
#include "step_system.h"

/* All blocks of the cluster are here, and see what the others wrote. */
static __device__ inline void cluster_wait(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
#else
  __syncthreads();
#endif
}

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

/* `count` reals, and those behind them. */
static __device__ inline double *take(double **from, int count)
{
  double *at = *from;
  *from += count;
  return at;
}

/* Thread 0: which atom and rows, and where everything is. */
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
  s->count = 0;
  s->pitch = pitch;
  s->kept = 0;
  s->first = -1;
  s->u_old = take(&shared, D * pitch);
  s->e = take(&shared, q * pitch);
  s->u_new = take(&shared, D * pitch);
  s->rows = take(&shared, a->capacity * pitch); /* pairs are aligned up to here */
  s->sums = take(&shared, step_sums(D, k) * (STEP_LANES + 1));
  s->added = take(&shared, step_sum_rows(D, q) * step_sum_pitch(D, q));
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
  s->scalar = take(&shared, 8);
  s->total = take(&shared, STEP_THREADS);
  s->start = (int *)take(&shared, STEP_GROUPS / 2 + 1);
  s->t = take(&shared, a->capacity * D);
  s->t_new = take(&shared, a->capacity * D);
  s->entry = (long long *)take(&shared, a->capacity);
  s->row = (int *)take(&shared, a->capacity);
}

/* Let the launch that follows begin; it waits for this one where it must. */
static __device__ inline void launch_next(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* The launches before this one have ended, and what they wrote is seen. */
static __device__ inline void launches_wait(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* What the atoms of other launches leave alone is brought before these have ended. */
static __device__ inline void step_open(struct step *s, const struct step_args *a, double *shared)
{
  launch_next();
  if (threadIdx.x == 0) step_lay(s, a, shared);
  __syncthreads();
  const double *frame = a->frames + (long long)s->atom * D * a->p;
#pragma unroll 1
  for (int v = threadIdx.x; v < D * a->p; v += THREADS)
    s->u_old[v / a->p * s->pitch + v % a->p] = __ldcg(frame + v);
  groups_find(s);
  if (s->lo < s->hi) rows_name(s, s->lo);
  struct stage first = stage_of(s);
  stage_bring(s, &first, 0, -1);
  launches_wait();
  rows_order(s);
}

/* v[p] loses its part along a unit vector.  The first time its norm is found beside. */
static __device__ inline void project_out(struct step *s, const double *unit, double *v,
                                          int with_norm)
{
  int p = s->a.p;
  if (threadIdx.x == 0) s->scalar[FIRST_DOT] = chain(unit, v, p);
  if (with_norm && threadIdx.x == WARP) s->scalar[NORM] = chain(v, v, p);
  __syncthreads();
  double dot = s->scalar[FIRST_DOT];
#pragma unroll 1
  for (int c = threadIdx.x; c < p; c += THREADS) v[c] = fma(-dot, unit[c], v[c]);
  __syncthreads();
}

static __device__ __noinline__ double norm_find(struct step *shared, const double *v)
{
  struct step *s = step_shared(shared);
  double square = threadIdx.x == 0 ? chain(v, v, s->a.p) : 0;
  return sqrt(scalar_share(s, NORM, square, threadIdx.x == 0));
}

static __device__ inline void vector_divide(const struct step *s, double *v, double norm)
{
#pragma unroll 1
  for (int c = threadIdx.x; c < s->a.p; c += THREADS) v[c] = v[c] / norm;
  __syncthreads();
}

/* The sum of a turn is a candidate: it becomes the next direction or is dropped. */
static __device__ __noinline__ void candidate_offer(struct step *shared, int turn, int m)
{
  struct step *s = step_shared(shared);
  double *v = s->e + s->kept * s->pitch, before = 0;
  const double *sum = sums_of(s, turn) + m * s->a.p;
#pragma unroll 1
  for (int c = threadIdx.x; c < s->a.p; c += THREADS) v[c] = __ldcg(sum + c);
  __syncthreads();
#pragma unroll 1
  for (int number = 0; number < 2 * (D + s->kept); number++) {
    int at = number % (D + s->kept);
    project_out(s, at < D ? s->u_old + at * s->pitch : s->e + (at - D) * s->pitch, v, number == 0);
    if (number == 0) before = sqrt(s->scalar[NORM]);
  }
  double norm = norm_find(s, v);
  if (!(norm > 9.094947017729282e-13 * before) || !is_finite(norm)) return; /* 2^-40 */
  vector_divide(s, v, norm);
  if (threadIdx.x == 0) s->kept++;
  __syncthreads();
}

/* The directions and the products of rows with them. */
static __device__ inline void directions_find(struct step *s)
{
  int q = s->a.q, turn = 0;
  columns_sum(s, -1, sums_of(s, turn), 1);
  rows_wait();
  cluster_wait();
#pragma unroll 1
  for (int m = 0; m < D && s->kept < q; m++) candidate_offer(s, turn, m);
#pragma unroll 1
  for (int j = 0; j == 0 || j < s->kept; j++) {
    products_find(s, j, j == 0);
    cluster_wait();
    if (j >= s->kept || s->kept == q) continue;
    columns_sum(s, j, sums_of(s, ++turn), 0);
    cluster_wait();
    candidate_offer(s, turn, 0);
  }
}

/* The frame after the step, orthonormal, and the factor of its codes; returns whether there is
 * one. */
static __device__ inline int frame_make(struct step *s)
{
  int p = s->a.p, bad = 0;
#pragma unroll 1
  for (int v = threadIdx.x; v < D * p; v += THREADS) {
    int m = v / p, c = v % p;
    double acc = s->u_old[m * s->pitch + c];
#pragma unroll 1
    for (int j = 0; j < s->kept; j++) acc = fma(s->e[j * s->pitch + c], s->beta[j * D + m], acc);
    s->u_new[m * s->pitch + c] = acc;
  }
  __syncthreads();
  for (int m = 0; m < D; m++) {
    double *v = s->u_new + m * s->pitch, before = norm_find(s, v), norm = before;
    for (int pass = 0; pass < 2; pass++)
#pragma unroll 1
      for (int l = 0; l < m; l++) project_out(s, s->u_new + l * s->pitch, v, 0);
    if (m) norm = norm_find(s, v);
    if (!(norm > 9.5367431640625e-07 * before)) return 0; /* 2^-20 */
    vector_divide(s, v, norm);
#pragma unroll 1
    for (int c = threadIdx.x; c < p; c += THREADS) bad |= !is_finite(v[c]);
  }
  return !__syncthreads_or(bad);
}

static __device__ inline int codes_factor(struct step *s)
{
  double *l = s->l_new;
  int bad = 0;
#pragma unroll 1
  for (int e = threadIdx.x; e < D * D; e += THREADS)
    if (e / D >= e % D)
      l[e] = chain(s->u_new + e / D * s->pitch, s->u_new + e % D * s->pitch, s->a.p);
  __syncthreads();
#pragma unroll 1
  for (int j = 0; j < D && threadIdx.x == 0 && !bad; j++)
    for (int i = j; i < D; i++) {
      double acc = l[i * D + j] + (i == j ? s->a.rho : 0);
#pragma unroll 1
      for (int k = 0; k < j; k++) acc = fma(-l[i * D + k], l[j * D + k], acc);
      if (i == j) bad |= !(acc > 0) || !is_finite(acc);
      l[i * D + j] = i > j ? acc / l[j * D + j] : D == 1 ? acc : sqrt(acc);
    }
  return !__syncthreads_or(bad);
}

/* Do the rows not become worse? */
static __device__ inline int try_judge(struct step *s, int turn)
{
  double done = 0;
  int lane = threadIdx.x;
#pragma unroll 1
  for (int first = 0; first < s->n && threadIdx.x < WARP; first += STEP_SEGMENT_ROWS) {
    int left = s->n - first, count = left < STEP_SEGMENT_ROWS ? left : STEP_SEGMENT_ROWS;
    double acc = 0;
#pragma unroll 8
    for (int i = lane; i < count; i += STEP_LANES) acc += __ldcg(try_of(s, turn, first + i));
#pragma unroll
    for (int half = STEP_LANES / 2; half >= 1; half /= 2)
      acc += __shfl_xor_sync(FULL_WARP, acc, half);
    done = first ? done + acc : acc;
  }
  return scalar_share(s, AFTER, done, threadIdx.x == 0) <= s->scalar[BEFORE];
}

/* Solve and try until a step is taken or there is no next try. */
static __device__ inline void step_take(struct step *s, struct step_found *found)
{
  double addition = 0;
#pragma unroll 1
  for (int turn = 0;;) {
    system_solve(s, &addition, found);
    if (found->status != STATUS_OK) return;
    if (frame_make(s) && codes_factor(s)) {
      rows_try(s, turn);
      cluster_wait();
      found->accepted = try_judge(s, turn);
      if (found->accepted) rows_keep(s, turn);
      if (found->accepted) return;
      turn++;
    }
    double most = diagonal_most(s), first = most > 0 ? 1e-3 * most : 1;
    double next = addition > 0 ? 10 * addition : first;
    if (found->retries + 1 > MAX_RETRIES || !is_finite(next)) return;
    addition = next;
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
