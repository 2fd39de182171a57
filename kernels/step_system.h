/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: its arrow system (N.7 to N.16) is assembled.  It is solved only for the border,
 * because the codes are computed anew later (step_trial.h).  The diagonal blocks of all rows are
 * equal. */
#ifndef STEP_SYSTEM_H
#define STEP_SYSTEM_H

#include "pair.h"
#include "step_sums.h"

enum { STATUS_OK, STATUS_ROW, STATUS_SCHUR, STATUS_NOT_FINITE }; /* enum arrow_status */
enum { MAX_RETRIES = 22 };

/* One thread factors H + ridge I.  Returns 1 if a pivot is not positive or not finite. */
static __device__ inline int block_factor(struct step *s, double ridge)
{
  double *l = s->factor;
  for (int j = 0; j < D; j++)
    for (int i = j; i < D; i++) {
      double acc = s->uu[i * D + j] + (i == j ? s->a.rho : 0);
      if (i == j) acc += ridge;
#pragma unroll 1
      for (int k = 0; k < j; k++) acc = fma(-l[k * D + i], l[k * D + j], acc);
      if (i > j) {
        l[j * D + i] = acc / l[j * D + j];
        continue;
      }
      if (!(acc > 0) || !is_finite(acc)) return 1;
      s->pivot[j] = acc;
      l[j * D + j] = sqrt(acc);
    }
  return 0;
}

/* Entry (i, j) of H + ridge I. */
static __device__ inline double block_entry(const struct step *s, double ridge, int i, int j)
{
  double h = s->uu[(i > j ? i : j) * D + (i > j ? j : i)];
  return i == j ? h + s->a.rho + ridge : h;
}

/* The additions to the diagonals of the rows (t) and of the border (b), or the units of these
 * additions; as struct ridges of the model. */
struct ridges {
  double t, b;
};

/* The largest magnitude of a coupling over all rows; all threads get it. */
static __device__ __noinline__ double coupling_most(struct step *s)
{
  double most = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < s->n; i += THREADS) {
    const double *values = values_of(s, i);
#pragma unroll 1
    for (int j = 0; j < s->kept; j++) {
      double ue[D], er = __ldcg(values + 2 * D + j);
      for (int m = 0; m < D; m++) ue[m] = s->ue[j * D + m];
      for (int l = 0; l < D; l++) {
        double t = __ldcg(values + l);
        for (int m = 0; m < D; m++)
          most = fmax(most, fabs(l == m ? fma(ue[m], t, -er) : ue[m] * t));
      }
    }
  }
  __syncthreads();
  s->total[threadIdx.x] = most;
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < THREADS; i++) most = fmax(most, s->total[i]);
  __syncthreads();
  return most;
}

/* The units of the blocks (N.14); called by all threads. */
static __device__ inline struct ridges units_find(struct step *s)
{
  struct ridges u = {0, 0};
  for (int m = 0; m < D; m++) u.t = fmax(u.t, fabs(s->uu[m * D + m] + s->a.rho));
#pragma unroll 1
  for (int j = 0; j < border_of(s); j++) u.b = fmax(u.b, fabs(s->diagonal[j]));
  if (u.t > 0 && u.b > 0) return u;
  double coupling = coupling_most(s);
  if (!(u.t > 0) && u.b > 0) u.t = coupling * coupling / u.b;
  if (!(u.t > 0)) u.t = 1;
  if (!(u.b > 0)) u.b = coupling * coupling / u.t;
  if (!(u.b > 0)) u.b = 1;
  return u;
}

/* The addition for a diagonal block that (N.14) suggests. */
static __device__ inline double block_bump(const struct step *s, double ridge, double unit)
{
  double least = __longlong_as_double(0x7ff0000000000000LL), most = unit;
  for (int i = 0; i < D; i++) {
    double others = 0, all = 0;
    for (int j = 0; j < D; j++) {
      double size = fabs(block_entry(s, ridge, i, j));
      if (j != i) others += size;
      all += size;
    }
    double gap = block_entry(s, ridge, i, i) - others;
    if (gap < least) least = gap;
    if (all > most) most = all;
  }
  return (least < 0 ? -least : 0) + 1024 * 1.4901161193847656e-08 * most;
}

/* The last warp computes the determinant of the diagonal blocks of all rows. */
static __device__ inline void blocks_pair(struct step *s)
{
  int lane = threadIdx.x % WARP;
  struct pair rows = pair_unit();
  if (threadIdx.x / WARP != WARPS - 1) return;
#pragma unroll 1
  for (int first = 0; first < s->n; first += STEP_SEGMENT_ROWS) {
    int left = s->n - first, count = left < STEP_SEGMENT_ROWS ? left : STEP_SEGMENT_ROWS;
    struct pair own = pair_unit();
#pragma unroll 1
    for (int i = lane, pivots = 0; i < count; i += STEP_LANES)
      for (int m = 0; m < D; m++) {
        pair_pivot(&own, s->pivot[m]);
        if (++pivots % 512 == 0) pair_normalise(&own);
      }
    pair_normalise(&own);
    pair_fold(&own, WARP);
    pair_times(&rows, own);
  }
  if (lane == 0) s->scalar[PAIR_M] = rows.m;
  if (lane == 0) s->scalar[PAIR_E] = __longlong_as_double(rows.e);
}

/* Make S and the right side from T and w, in place.  Also store a copy of S in `whole`, and the
 * diagonal of C.  Returns 1 if C and h are finite, and 0 otherwise. */
static __device__ inline int border_make(struct step *s, double ridge)
{
  int k = border_of(s), pitch = k + 2, q = s->a.q, bad = 0;
#pragma unroll 1
  for (int e = threadIdx.x; e < k * (k + 1); e += THREADS) {
    int j = e / (k + 1), i = e % (k + 1);
    double *at = s->schur + j * pitch + i;
    if (i < j) continue;
    if (i == k) {
      bad |= !is_finite(s->h[j]);
      *at = *at + s->h[j];
      continue;
    }
    double c = s->ee[i / D * q + j / D] * s->tt[i % D * D + j % D];
    bad |= !is_finite(c);
    if (i == j) s->diagonal[j] = c;
    *at = (i == j ? c + ridge : c) - *at;
    s->whole[j * pitch + i] = *at;
  }
  return !__syncthreads_or(bad);
}

/* Factor S and solve.  The last row of S is the right side.  Called by the first warp; lane i has
 * row i.  Returns 1 if a pivot is not positive or not finite, and 0 otherwise. */
static __device__ inline int border_solve(struct step *s)
{
  enum { AHEAD = 4 };
  int k = border_of(s), pitch = k + 2, lane = threadIdx.x % WARP, is_row = lane <= k;
  double *schur = (double *)in_shared(s->schur);
  struct pair border = pair_unit();
#pragma unroll 1
  for (int j = 0; j < k; j++) {
    int is_below = lane >= j && is_row;
    double *column = schur + j * pitch, pivot = column[j], own = is_below ? column[lane] : 1;
    if (!(pivot > 0) || !is_finite(pivot)) return 1;
    struct root root = root_of(pivot);
    if (!root.is_usual) root.l = sqrt(pivot);
    if (lane == j)
      own = root.l;
    else
      own = root.is_usual && is_usual(own) ? root_quotient(own, &root) : own / root.l;
    __syncwarp();
    if (is_below) column[lane] = own;
    pair_pivot(&border, pivot);
    __syncwarp();
#pragma unroll 1
    for (int i = j + 1; i < k; i += AHEAD) {
      double x[AHEAD], c[AHEAD];
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (i + r < k && is_row) {
          x[r] = schur[(i + r) * pitch + lane];
          c[r] = column[i + r];
        }
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (lane >= i + r && i + r < k && is_row)
          schur[(i + r) * pitch + lane] = fma(-own, c[r], x[r]);
    }
    __syncwarp();
  }
  double right = lane < k ? schur[lane * pitch + k] : 1;
  double l = lane < k ? schur[lane * pitch + lane] : 1;
  struct divisor pivot = divisor_of(l);
#pragma unroll 1
  for (int i = k - 1; i >= 0; i--) {
    double below = lane < i ? schur[lane * pitch + i] : 0;
    double step = is_usual(l) && is_usual(right) ? quotient(right, &pivot) : right / l;
    step = __shfl_sync(FULL_WARP, step, i);
    if (lane == i) s->beta[i] = step;
    if (lane < i) right = fma(-below, step, right);
  }
  pair_normalise(&border);
  if (lane == 0) s->scalar[BORDER_M] = border.m;
  if (lane == 0) s->scalar[BORDER_E] = __longlong_as_double(border.e);
  return 0;
}

/* The determinant of rows and border together. */
static __device__ inline void pairs_join(struct step *s)
{
  struct pair rows = {s->scalar[PAIR_M], __double_as_longlong(s->scalar[PAIR_E])};
  struct pair border = {s->scalar[BORDER_M], __double_as_longlong(s->scalar[BORDER_E])};
  pair_times(&rows, border);
  s->scalar[PAIR_M] = rows.m;
  s->scalar[PAIR_E] = __longlong_as_double(rows.e);
}

/* The addition for the border that (N.14) suggests. */
static __device__ inline double border_bump(const struct step *s, double unit)
{
  int k = border_of(s), pitch = k + 2;
  double least = __longlong_as_double(0x7ff0000000000000LL);
#pragma unroll 1
  for (int i = 0; i < k; i++) {
    double others = 0;
#pragma unroll 1
    for (int j = 0; j < k; j++)
      if (j != i) others += fabs(s->whole[(i > j ? j : i) * pitch + (i > j ? i : j)]);
    double gap = s->whole[i * pitch + i] - others;
    if (gap < least) least = gap;
  }
  return (least < 0 ? -least : 0) + 1e-3 * unit;
}

/* Returns to all threads the value of the one thread whose is_mine is 1. */
static __device__ inline double scalar_broadcast(struct step *s, int at, double value, int is_mine)
{
  if (is_mine) s->scalar[at] = value;
  __syncthreads();
  value = s->scalar[at];
  __syncthreads();
  return value;
}

/* Solve with these ridges; returns the status.  If a pivot is bad (STATUS_ROW, STATUS_SCHUR), *bump
 * <- the additions that (N.14) suggests. */
static __device__ __noinline__ int system_try(struct step *shared, struct ridges ridge,
                                              struct ridges *bump)
{
  struct step *s = step_shared(shared);
  int bad = 0, is_first = threadIdx.x == 0;
#pragma unroll 1
  for (int e = threadIdx.x; e < D * D; e += THREADS)
    bad |= !is_finite(s->uu[e] + (e % (D + 1) == 0 ? s->a.rho : 0));
  int finite = !__syncthreads_or(bad);
  bad = is_first && finite ? block_factor(s, ridge.t) : 0;
  int failed = __syncthreads_or(bad);
  if (failed) { /* the sums below, which find numbers that are not finite, need some factor */
#pragma unroll 1
    for (int e = threadIdx.x; e < D * D; e += THREADS) s->factor[e] = e % (D + 1) == 0;
#pragma unroll 1
    for (int m = threadIdx.x; m < D; m += THREADS) s->pivot[m] = 1;
    __syncthreads();
  }
  finite = finite && (lanes_are_shared(s) ? lanes_exchange(s) : rows_reduce(s));
  if (!finite) return STATUS_NOT_FINITE;
  totals_scatter(s);
  if (!border_make(s, ridge.b)) return STATUS_NOT_FINITE;
  if (failed) {
    struct ridges unit = units_find(s);
    double own = scalar_broadcast(s, BUMP, is_first ? block_bump(s, ridge.t, unit.t) : 0, is_first);
    *bump = {own, own / unit.t * unit.b};
    return STATUS_ROW;
  }
  blocks_pair(s);
  bad = threadIdx.x < WARP ? border_solve(s) : 0;
  if (__syncthreads_or(bad)) {
    struct ridges unit = units_find(s);
    double own = scalar_broadcast(s, BUMP, is_first ? border_bump(s, unit.b) : 0, is_first);
    *bump = {own / unit.b * unit.t, own};
    return STATUS_SCHUR;
  }
  if (is_first) pairs_join(s);
  return STATUS_OK;
}

static __device__ inline int is_zero(struct ridges addition)
{
  return addition.t == 0 && addition.b == 0;
}

/* If *addition is 0, set it to `first`, otherwise to ten times itself, and return 1.  If the result
 * is not finite, leave *addition as it is and return 0. */
static __device__ inline int ridges_raise(struct ridges *addition, struct ridges first)
{
  struct ridges next = is_zero(*addition) ? first : ridges{10 * addition->t, 10 * addition->b};
  if (!is_finite(next.t) || !is_finite(next.b)) return 0;
  *addition = next;
  return 1;
}

/* Solve with larger and larger ridges until that succeeds or must stop (N.15).  *addition: the
 * addition of the first attempt, and afterwards of the last.  found->retries: the number of failed
 * attempts so far, in this call and in earlier ones. */
static __device__ inline void system_solve(struct step *s, struct ridges *addition,
                                           struct step_found *found)
{
#pragma unroll 1
  for (;; found->retries++) {
    struct ridges bump = {0, 0};
    found->ridge = addition->t;
    found->status = system_try(s, *addition, &bump);
    if (found->status == STATUS_OK || found->status == STATUS_NOT_FINITE) return;
    if (found->retries >= MAX_RETRIES || !ridges_raise(addition, bump)) return;
  }
}

#endif
