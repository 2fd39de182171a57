/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: what its rows become with the new frame, and where that is kept.
 *
 * -D STEP_D  vectors of a frame */
#ifndef STEP_TRIAL_H
#define STEP_TRIAL_H

#include "step_rows.h"

/* t[D] <- (U'U + rho I)^-1 b, from l_new. */
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

/* Codes of own row i after the step, from their right side: in t_new. */
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

/* Tries alternate between two places, so that nobody overwrites what another block still reads. */
static __device__ inline double *try_of(const struct step *s, int turn, int position)
{
  long long at = turn % 2 * s->a.class_rows + s->at + position;
  return s->a.tries + at * (1 + D);
}

/* Right sides of the codes of `count` rows after the step: in t_new. */
static __device__ inline void rows_side(struct step *s, int count)
{
  double t[ABREAST][D];
  rows_multiply<D>(
      s, count,
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

/* Objectives of `count` rows with their new codes, and these, for all. */
static __device__ inline void rows_judge(struct step *s, int count, int turn)
{
  double t[ABREAST][D], t_new[ABREAST][D];
  rows_multiply<1>(
      s, count,
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

/* A product of two vectors of the new frame, by a warp. */
static __device__ inline void frame_multiply(struct step *s, int number)
{
  int m = number / D, l = number % D;
  if (m < l) return;
  double product = lane_product(s->u_new + m * s->pitch, s->u_new + l * s->pitch, s->a.p);
  if (threadIdx.x % WARP == 0) s->l_new[number] = product;
}

/* The factor of the codes from these products; returns whether there is one.  For all threads. */
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

/* Codes and objectives of own rows with the new frame, whose products are found beside their right
 * sides; returns whether there is a factor. */
static __device__ __noinline__ int rows_try(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
  int first = s->lo, is_first = 1;
#pragma unroll 1
  for (int number = WARPS - 1 - threadIdx.x / WARP; number < D * D; number += WARPS)
    frame_multiply(s, number);
#pragma unroll 1
  do {
    if (first < s->hi) rows_bring(s, first);
    int count = first < s->hi ? s->count : 0;
    rows_side(s, count);
    __syncthreads();
    if (is_first && !codes_factor(s)) return 0;
    is_first = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) row_code(s, i);
    __syncthreads();
    rows_judge(s, count, turn);
    first += s->a.capacity;
  } while (first < s->hi);
  return 1;
}

/* Own row i after the step, column by column, by a warp. */
static __device__ inline void row_keep(const struct step *s, int i, double *to)
{
  const double *row = in_shared(s->rows + i * s->pitch), *u_old = in_shared(s->u_old),
               *u_new = in_shared(s->u_new);
  double t[D], t_new[D];
  int p = s->a.p, pitch = s->pitch;
#pragma unroll
  for (int m = 0; m < D; m++) {
    t[m] = s->t[i * D + m];
    t_new[m] = s->t_new[i * D + m];
  }
  auto moved_at = [&](int c) {
    double one[D], other[D];
#pragma unroll
    for (int m = 0; m < D; m++) {
      one[m] = u_old[m * pitch + c];
      other[m] = u_new[m * pitch + c];
    }
    return moved(added_back(row[c], one, t), other, t_new);
  };
  if (p % 2 == 0)
#pragma unroll 3
    for (int c = threadIdx.x % WARP * 2; c < p; c += 2 * WARP)
      *(double2 *)(to + c) = make_double2(moved_at(c), moved_at(c + 1));
  else
#pragma unroll 2
    for (int c = threadIdx.x % WARP; c < p; c += WARP) to[c] = moved_at(c);
}

/* The step is taken: residuals and codes of own rows. */
static __device__ __noinline__ void rows_keep(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
  const struct step_args *a = &s->a;
#pragma unroll 1
  for (int first = s->lo; first < s->hi; first += s->a.capacity) {
    int is_there = s->first == first && s->count == s->hi - s->lo;
    rows_bring(s, first);
#pragma unroll 1
    for (int e = threadIdx.x; e < s->count * D; e += THREADS) {
      double t = is_there ? s->t_new[e] : __ldcg(try_of(s, turn, first + e / D) + 1 + e % D);
      s->t_new[e] = t;
      a->codes[s->entry[e / D] * D + e % D] = t;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x / WARP; i < s->count; i += WARPS)
      row_keep(s, i, a->residual + (long long)s->row[i] * a->p);
  }
}

#endif
