/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: its rows are whitened (N.9), and the sums over rows of its arrow system (N.12)
 * are added.  The blocks of a cluster share the sums, or each block adds all of them.
 *
 * A row that is added is stored in shared memory as
 *     Y [kept d][d], u [d], codes [d], products with directions [kept], objective, 1. */
#ifndef STEP_SUMS_H
#define STEP_SUMS_H

#include "step_here.h"

/* The number of columns of the border. */
static __device__ inline int border_of(const struct step *s)
{
  return s->kept * D;
}

/* x[D] <- L^-1 x. */
static __device__ inline void block_forward(const struct step *s, double *x)
{
  const double *l = s->factor;
#pragma unroll
  for (int i = 0; i < D; i++) {
#pragma unroll
    for (int k = 0; k < i; k++) x[i] = fma(-l[k * D + i], x[k], x[i]);
    x[i] = x[i] / l[i * D + i];
  }
}

/* Write the row at a position, whitened, to `out`.  Column j d + l of Y belongs to direction j and
 * vector l.  Returns 1 if all numbers that are whitened are finite, and 0 otherwise. */
static __device__ inline int row_whiten(const struct step *s, int position, double *out)
{
  const double *values = values_of(s, position);
  int q = s->a.q, k = border_of(s), finite = 1;
  double t[D], ur[D], x[D], products[STEP_MAX_DIRECTIONS];
  double objective = __ldcg(values + 2 * D + q);
  __builtin_assume(__isShared(out));
#pragma unroll
  for (int m = 0; m < D; m++) t[m] = __ldcg(values + m);
#pragma unroll
  for (int m = 0; m < D; m++) ur[m] = __ldcg(values + D + m);
#pragma unroll
  for (int j = 0; j < STEP_MAX_DIRECTIONS; j++)
    products[j] = j < s->kept ? __ldcg(values + 2 * D + j) : 0;
#pragma unroll
  for (int j = 0; j < STEP_MAX_DIRECTIONS; j++)
    if (j < s->kept) out[(k + 2) * D + j] = products[j];
#pragma unroll 1
  for (int j = 0; j < s->kept; j++) {
    double er = out[(k + 2) * D + j];
    for (int l = 0; l < D; l++) {
#pragma unroll
      for (int m = 0; m < D; m++) {
        double ue = s->ue[j * D + m];
        x[m] = l == m ? fma(ue, t[l], -er) : ue * t[l];
        finite &= is_finite(x[m]);
      }
      block_forward(s, x);
#pragma unroll
      for (int m = 0; m < D; m++) out[(j * D + l) * D + m] = x[m];
    }
  }
#pragma unroll
  for (int m = 0; m < D; m++) {
    x[m] = fma(s->a.rho, t[m], -ur[m]);
    finite &= is_finite(x[m]);
  }
  block_forward(s, x);
#pragma unroll
  for (int m = 0; m < D; m++) {
    out[k * D + m] = x[m];
    out[(k + 1) * D + m] = t[m];
  }
  out[(k + 2) * D + s->kept] = objective;
  out[(k + 2) * D + s->kept + 1] = 1;
  return finite;
}

/* A sum over rows.  A row adds `terms` products: of its numbers x and y, x + 1 and y + 1, and so
 * on. */
struct sum {
  int x, y, terms;
};

static __device__ inline struct sum sum_of(const struct step *s, int number)
{
  int k = border_of(s), base = (k + 1) * D;
#pragma unroll 1
  for (int i = 0; i < k; number -= ++i)
    if (number <= i) return {i * D, number * D, D};
  if (number < k) return {number * D, k * D, D};
  number -= k;
  for (int m = 0; m < D; number -= ++m)
    if (number <= m) return {base + m, base + number, 1};
  if (number < k) return {base + number % D, base + D + number / D, 1};
  return {base + D + s->kept, base + D + s->kept + 1, 1};
}

/* The totals of the sums.  They are stored after the lanes of all sums. */
static __device__ inline double *sums_total(const struct step *s)
{
  return s->sums + step_sums(D, border_of(s)) * STEP_LANES;
}

/* Continue a lane of a sum over the rows first, first + stride, ... < count of `added`. */
static __device__ inline double lane_add(const struct step *s, int number, int first, int stride,
                                         int count, double acc)
{
  struct sum sum = sum_of(s, number);
  int pitch = step_sum_pitch(D, s->a.q);
  const double *x = in_shared(s->added) + sum.x, *y = in_shared(s->added) + sum.y;
  if (D == 1 || sum.terms == 1)
#pragma unroll 8
    for (int i = first; i < count; i += stride) acc = fma(x[i * pitch], y[i * pitch], acc);
  else
#pragma unroll 2
    for (int i = first; i < count; i += stride)
#pragma unroll
      for (int m = 0; m < D; m++) acc = fma(x[i * pitch + m], y[i * pitch + m], acc);
  return acc;
}

/* Add the `count` rows in `added` to the lanes of every sum. */
static __device__ inline void lanes_add(struct step *s, int count, int is_first)
{
  int sums = step_sums(D, border_of(s)), lane = threadIdx.x % WARP;
#pragma unroll 1
  for (int number = threadIdx.x / WARP; number < sums; number += WARPS) {
    double *at = s->sums + number * STEP_LANES + lane;
    *at = lane_add(s, number, lane, STEP_LANES, count, is_first ? 0 : *at);
  }
}

/* At the end of a segment (STEP_SEGMENT_ROWS rows; the last one may have fewer): join the lanes
 * of each sum by the tree of (N.12), and add the result to the total of the sum. */
static __device__ inline void lanes_fold(struct step *s, int segment)
{
  int sums = step_sums(D, border_of(s)), lane = threadIdx.x % WARP;
  double *total = sums_total(s);
#pragma unroll 1
  for (int number = threadIdx.x / WARP; number < sums; number += WARPS) {
    double acc = lanes_total(s->sums[number * STEP_LANES + lane]);
    if (lane == 0) total[number] = segment ? total[number] + acc : acc;
  }
}

/* Do the blocks of the cluster share the lanes?  They do if there are several blocks that have
 * their rows in sight, and a block has a thread for each of its lanes of all sums. */
static __device__ inline int lanes_are_shared(const struct step *s)
{
  return s->is_here && s->size > 1 && step_sums(D, border_of(s)) * STEP_LANES / s->size <= THREADS;
}

/* The cluster computes all sums over rows together.  The number of blocks is a power of two.  A
 * block has the lanes whose number modulo the number of blocks is its rank.  It joins these lanes
 * by the first levels of the tree, and sends the result to all blocks.  Each block joins these
 * results.  `sums` receives [sums + 1][blocks]; the last line tells which blocks found a number
 * that is not finite.  Returns 1 if all numbers are finite, and 0 otherwise. */
static __device__ __noinline__ int lanes_exchange(struct step *shared)
{
  struct step *s = step_shared(shared);
  int sums = step_sums(D, border_of(s)), size = s->size, shift = __ffs(size) - 1, turn = s->shares;
  int own = STEP_LANES >> shift, bits = __ffs(own) - 1;
  int lane = threadIdx.x & (own - 1), number = threadIdx.x >> bits;
  int rest = (s->n % STEP_LANES - s->rank + size - 1) >> shift;
  int rows = (s->n / STEP_LANES << bits) + rest, room = step_sum_rows(D, s->a.q), bad = 0;
  double acc = 0, *parts = (double *)in_shared(s->sums);
  if (turn > 0) cluster_barrier(); /* all blocks have read the previous numbers */
  here_expect(s, HERE_LANES, (sums + 1) * size);
#pragma unroll 1
  for (int first = 0; first < rows; first += room) {
    int count = min_of(rows - first, room), pitch = step_sum_pitch(D, s->a.q);
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
      int at = first + i, group = at >> bits, lane_of = at & (own - 1);
      int position = group * STEP_LANES + (lane_of << shift) + s->rank;
      bad |= !row_whiten(s, position, s->added + i * pitch);
    }
    __syncthreads();
    if (number < sums) acc = lane_add(s, number, lane, own, count, acc);
  }
  acc = lanes_join(acc, own);
  if (lane == 0 && number < sums) s->total[number] = acc;
  bad = __syncthreads_or(bad);
#pragma unroll 1
  for (int i = threadIdx.x; i < (sums + 1) * size; i += THREADS) {
    int e = i >> shift;
    double x = e < sums ? s->total[e] : bad;
    here_send(s, HERE_LANES, parts + (i - (i & (size - 1))) + s->rank, i & (size - 1), x);
  }
  here_wait(s, HERE_LANES, turn);
  if (threadIdx.x == 0) s->shares = turn + 1;
#pragma unroll 1
  for (int i = threadIdx.x; i / WARP * WARP < sums * size; i += THREADS) {
    acc = lanes_join(i < sums * size ? parts[i] : 0, size);
    if (i < sums * size && (i & (size - 1)) == 0) sums_total(s)[i >> shift] = acc;
  }
  return !__syncthreads_or(threadIdx.x < size && parts[sums * size + threadIdx.x] != 0);
}

/* This block computes all sums over rows alone.  Returns 1 if row_whiten() found all rows finite,
 * and 0 otherwise. */
static __device__ inline int rows_reduce(struct step *s)
{
  int rows = step_sum_rows(D, s->a.q), pitch = step_sum_pitch(D, s->a.q), bad = 0;
#pragma unroll 1
  for (int first = 0; first < s->n;) {
    int segment = first / STEP_SEGMENT_ROWS, at = first % STEP_SEGMENT_ROWS;
    int left = s->n - first, room = STEP_SEGMENT_ROWS - at;
    int count = left < rows ? left : rows;
    count = count < room ? count : room;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS)
      bad |= !row_whiten(s, first + i, s->added + i * pitch);
    __syncthreads();
    lanes_add(s, count, at == 0);
    first += count;
    if (first == s->n || first % STEP_SEGMENT_ROWS == 0) lanes_fold(s, segment);
  }
  return !__syncthreads_or(bad);
}

/* Copy the totals to their places.  T and w go to `schur`: its column j begins at j (k + 2), and
 * its row k is the right side.  The others go to tt, to h and, the objective of the rows, to
 * scalar[BEFORE]. */
static __device__ inline void totals_scatter(struct step *s)
{
  int k = border_of(s), pitch = k + 2, sums = step_sums(D, k);
  const double *total = sums_total(s);
#pragma unroll 1
  for (int number = threadIdx.x; number < sums; number += THREADS) {
    struct sum sum = sum_of(s, number);
    double value = total[number];
    int t = k * (k + 1) / 2, w = t + k, c = w + D * (D + 1) / 2;
    if (number < t) {
      s->schur[sum.y / D * pitch + sum.x / D] = value;
    } else if (number < w) {
      s->schur[sum.x / D * pitch + k] = value;
    } else if (number < c) {
      int m = sum.x - (k + 1) * D, l = sum.y - (k + 1) * D;
      s->tt[m * D + l] = value;
      s->tt[l * D + m] = value;
    } else if (number < c + k) {
      s->h[number - c] = value;
    } else {
      s->scalar[BEFORE] = value;
    }
  }
  __syncthreads();
}

#endif
