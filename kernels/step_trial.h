/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: computes the codes and objectives of its rows with the new frame, and stores
 * codes and residuals if the step is accepted.
 *
 * -D STEP_D  vectors per frame */
#ifndef STEP_TRIAL_H
#define STEP_TRIAL_H

#include "step_rows.h"

/* t[D] <- (U'U + rho I)^-1 b, with the factor in l_new. */
static __device__ inline void codes_solve(const struct step *s, const double *b, double *t)
{
  const double *l = s->l_new;
  if (D == 1) {
    t[0] = b[0] / l[0];
    return;
  }
#pragma unroll
  for (int i = 0; i < D; i++) {
    double acc = b[i];
#pragma unroll
    for (int k = 0; k < i; k++) acc = fma(-l[i * D + k], t[k], acc);
    t[i] = acc / l[i * D + i];
  }
#pragma unroll
  for (int i = D - 1; i >= 0; i--) {
    double acc = t[i];
#pragma unroll
    for (int k = D - 1; k > i; k--) acc = fma(-l[k * D + i], t[k], acc);
    t[i] = acc / l[i * D + i];
  }
}

/* In t_new, replace the right side of own row i by its codes after the step. */
static __device__ inline void row_code(struct step *s, int i)
{
  double b[D], t[D];
#pragma unroll
  for (int m = 0; m < D; m++) b[m] = s->t_new[i * D + m];
  codes_solve(s, b, t);
  if (s->a.nonnegative && !(t[0] > 0)) t[0] = 0;
#pragma unroll
  for (int m = 0; m < D; m++) s->t_new[i * D + m] = t[m];
}

/* The try of a row: its objective and its codes with the new frame.  Tries alternate between two
 * buffers, so that no block overwrites numbers that another block still reads. */
static __device__ inline double *try_of(const struct step *s, int turn, int position)
{
  long long at = turn % 2 * s->a.class_rows + s->at + position;
  return s->a.tries + at * (1 + D);
}

/* t_new <- the right sides of the systems whose solutions are the new codes of rows. */
template <int IS_HELD> static __device__ inline void rows_side(struct step *s)
{
  double t[ABREAST][D];
  rows_multiply<D, IS_HELD>(
      s,
      [&](int r, int i) {
#pragma unroll
        for (int m = 0; m < D; m++) t[r][m] = in_shared(s->t)[i * D + m];
      },
      [&](int c, const double *x, double *acc) {
        double u_old[D], u_new[D];
        frame_column(s, s->u_old, c, u_old);
        frame_column(s, s->u_new, c, u_new);
#pragma unroll
        for (int r = 0; r < ABREAST; r++) {
          double y = added_back(x[r], u_old, t[r]);
#pragma unroll
          for (int m = 0; m < D; m++) acc[r * D + m] = fma(y, u_new[m], acc[r * D + m]);
        }
      },
      [&](int i, int m, double product) { s->t_new[i * D + m] = product; });
}

/* Store the new codes of rows, and their objectives with these codes, where all blocks can read
 * them. */
template <int IS_HELD> static __device__ inline void rows_evaluate(struct step *s, int turn)
{
  double t[ABREAST][D], t_new[ABREAST][D];
  rows_multiply<1, IS_HELD>(
      s,
      [&](int r, int i) {
#pragma unroll
        for (int m = 0; m < D; m++) {
          t[r][m] = in_shared(s->t)[i * D + m];
          t_new[r][m] = in_shared(s->t_new)[i * D + m];
        }
      },
      [&](int c, const double *x, double *acc) {
        double u_old[D], u_new[D];
        frame_column(s, s->u_old, c, u_old);
        frame_column(s, s->u_new, c, u_new);
#pragma unroll
        for (int r = 0; r < ABREAST; r++) {
          double y = moved(added_back(x[r], u_old, t[r]), u_new, t_new[r]);
          acc[r] = fma(y, y, acc[r]);
        }
      },
      [&](int i, int, double product) {
        double *out = try_of(s, turn, s->first + i), norm = 0;
#pragma unroll
        for (int m = 0; m < D; m++) {
          double code = s->t_new[i * D + m];
          norm = fma(code, code, norm);
          out[1 + m] = code;
        }
        out[0] = fma(s->a.rho, norm, product);
      });
}

static __device__ __noinline__ void far_side(struct step *shared)
{
  rows_side<0>(step_shared(shared));
}

static __device__ __noinline__ void far_evaluate(struct step *shared, int turn)
{
  rows_evaluate<0>(step_shared(shared), turn);
}

/* A product of two vectors of the new frame, by one warp. */
static __device__ inline void frame_multiply(struct step *s, int number)
{
  int m = number / D, l = number % D;
  if (m < l) return;
  double product = lane_product(s->u_new + m * s->pitch, s->u_new + l * s->pitch, s->a.p);
  if (threadIdx.x % WARP == 0) s->l_new[number] = product;
}

/* Factor U'U + rho I of the new frame, from the products of frame_multiply().  For D = 1 the pivot
 * itself takes the place of its root.  Returns 1 to all threads if it is positive definite, and 0
 * otherwise. */
static __device__ inline int codes_factor(struct step *s)
{
  double *l = s->l_new;
  int bad = 0;
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

/* Compute the codes and objectives of own rows with the new frame.  Before their rows, warps
 * multiply the frame's vectors: the last warp makes product 0, the one before it product 1.
 * Returns 0 if codes_factor() fails, otherwise 1. */
static __device__ __noinline__ int rows_try(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
  struct parts_of_rows parts = parts_of(s);
  int done = 0;
#pragma unroll 1
  for (int number = WARPS - 1 - threadIdx.x / WARP; number < D * D; number += WARPS)
    frame_multiply(s, number);
#pragma unroll 1
  do {
    if (parts.count) rows_stage(s, part_next(&parts));
    int is_far = s->held < s->count;
    rows_side<1>(s);
    if (is_far) far_side(s);
    __syncthreads();
    if (done == 0 && !codes_factor(s)) return 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < s->count; i += THREADS) row_code(s, i);
    __syncthreads();
    rows_evaluate<1>(s, turn);
    if (is_far) far_evaluate(s, turn);
  } while (++done < parts.count);
  return 1;
}

/* Columns c and c + 1 of a vector. */
static __device__ inline double2 pair_at(const double *x, int c)
{
  return *(const double2 *)(x + c);
}

/* Write the residuals of rows after the step to global memory; rows that are not held are updated
 * in place.  A warp does ABREAST rows at a time, and a lane two columns at a time (one if p is
 * odd). */
template <int IS_HELD> static __device__ inline void rows_leave(const struct step *s)
{
  const double *rows = in_shared(s->rows), *u_old = in_shared(s->u_old),
               *u_new = in_shared(s->u_new);
  int p = s->a.p, pitch = s->pitch, lane = threadIdx.x % WARP, is_even = p % 2 == 0;
  int begin = rows_begin<IS_HELD>(s), end = rows_end<IS_HELD>(s);
#pragma unroll 1
  for (int first = begin + threadIdx.x / WARP * ABREAST; first < end; first += WARPS * ABREAST) {
    double t[ABREAST][D], t_new[ABREAST][D], *to[ABREAST];
    int at[ABREAST], abreast = min_of(end - first, ABREAST);
#pragma unroll
    for (int r = 0; r < ABREAST; r++) {
      int i = min_of(first + r, end - 1);
      at[r] = i * pitch;
      to[r] = s->a.residual + (long long)in_shared(s->row)[i] * p;
#pragma unroll
      for (int m = 0; m < D; m++) {
        t[r][m] = in_shared(s->t)[i * D + m];
        t_new[r][m] = in_shared(s->t_new)[i * D + m];
      }
    }
#pragma unroll 1
    for (int c = 2 * lane; c < p && is_even; c += 2 * WARP) {
      double2 one[D], other[D];
#pragma unroll
      for (int m = 0; m < D; m++) {
        one[m] = pair_at(u_old, m * pitch + c);
        other[m] = pair_at(u_new, m * pitch + c);
      }
      double2 x[ABREAST];
#pragma unroll
      for (int r = 0; r < ABREAST; r++)
        x[r] = IS_HELD ? pair_at(rows, at[r] + c) : __ldcg((const double2 *)(to[r] + c));
#pragma unroll
      for (int r = 0; r < ABREAST; r++) {
#pragma unroll
        for (int m = 0; m < D; m++) {
          x[r].x = fma(one[m].x, t[r][m], x[r].x);
          x[r].y = fma(one[m].y, t[r][m], x[r].y);
        }
#pragma unroll
        for (int m = 0; m < D; m++) {
          x[r].x = fma(-other[m].x, t_new[r][m], x[r].x);
          x[r].y = fma(-other[m].y, t_new[r][m], x[r].y);
        }
        if (r < abreast) *(double2 *)(to[r] + c) = x[r];
      }
    }
#pragma unroll 1
    for (int c = lane; c < p && !is_even; c += WARP) {
      double one[D], other[D];
      frame_column(s, s->u_old, c, one);
      frame_column(s, s->u_new, c, other);
#pragma unroll
      for (int r = 0; r < ABREAST; r++) {
        double x = IS_HELD ? rows[at[r] + c] : __ldcg(to[r] + c);
        if (r < abreast) to[r][c] = moved(added_back(x, one, t[r]), other, t_new[r]);
      }
    }
  }
}

static __device__ __noinline__ void far_leave(struct step *shared)
{
  rows_leave<0>(step_shared(shared));
}

/* Accept the step: write residuals and codes of own rows. */
static __device__ __noinline__ void rows_keep(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
  const struct step_args *a = &s->a;
  struct parts_of_rows parts = parts_of(s);
#pragma unroll 1
  for (int part = 0; part < parts.count; part++) {
    int first = part_next(&parts), is_there = s->first == first && s->count == s->hi - s->lo;
    rows_stage(s, first);
#pragma unroll 1
    for (int e = threadIdx.x; e < s->count * D; e += THREADS) {
      double t = is_there ? s->t_new[e] : __ldcg(try_of(s, turn, first + e / D) + 1 + e % D);
      s->t_new[e] = t;
      a->codes[s->entry[e / D] * D + e % D] = t;
    }
    __syncthreads();
    rows_leave<1>(s);
    if (s->held < s->count) far_leave(s);
  }
}

#endif
