/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: what a block knows, its own rows in shared memory, and what is computed row by
 * row.  Chains over columns are a thread's.
 *
 * -D STEP_D  vectors of a frame */
#ifndef STEP_ROWS_H
#define STEP_ROWS_H

#include "async_copy.h"
#include "step_types.h"
#include "warp.h"

enum { D = STEP_D, THREADS = STEP_THREADS, WARPS = STEP_THREADS / WARP };

/* A block's part of an atom; arrays are in shared memory, vectors `pitch` apart. */
struct step {
  const struct step_args *a;
  const struct step_item *item;
  int index, rank, size; /* of the item, of the block in its cluster, blocks there */
  int n, pitch, kept;    /* kept: directions */
  double *u_old, *e, *u_new;
  double *sums, *added; /* of step_system.h */
  double *uu, *ue, *ee, *factor, *pivot, *tt, *h, *l_new;
  double *schur, *whole, *diagonal, *beta, *scalar;
  /* Own rows at positions first .. first + count - 1: */
  int first, count;
  double *rows, *t, *t_new, *weight;
  long long *entry;
  int *row, *block, *end; /* end: where the rows of the same sum block end */
};

static __device__ inline int step_lo(const struct step *s)
{
  return s->item->bound[s->rank];
}

static __device__ inline int step_hi(const struct step *s)
{
  return s->item->bound[s->rank + 1];
}

/* What the row at a position gives to sums. */
static __device__ inline double *values_of(const struct step *s, int position)
{
  return s->a->values + (long long)(s->item->at + position) * step_values(D, s->a->q);
}

/* Says to the compiler where `x` is, which it does not see through struct step. */
static __device__ inline const double *in_shared(const double *x)
{
  __builtin_assume(__isShared(x));
  return x;
}

/* The chain of two vectors in shared memory.  What comes next is on its way while the present terms
 * are added. */
static __device__ __noinline__ double chain(const double *x, const double *y, int p)
{
  enum { AHEAD = 8 };
  double acc = 0, a[AHEAD], b[AHEAD];
  int c = 0;
  x = in_shared(x);
  y = in_shared(y);
  if (p >= AHEAD) {
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
      a[i] = x[i];
      b[i] = y[i];
    }
#pragma unroll 1
    for (c = AHEAD; c + AHEAD <= p; c += AHEAD) {
      double next_a[AHEAD], next_b[AHEAD];
#pragma unroll
      for (int i = 0; i < AHEAD; i++) {
        next_a[i] = x[c + i];
        next_b[i] = y[c + i];
      }
#pragma unroll
      for (int i = 0; i < AHEAD; i++) {
        acc = fma(a[i], b[i], acc);
        a[i] = next_a[i];
        b[i] = next_b[i];
      }
    }
#pragma unroll
    for (int i = 0; i < AHEAD; i++) acc = fma(a[i], b[i], acc);
  }
#pragma unroll 1
  for (; c < p; c++) acc = fma(x[c], y[c], acc);
  return acc;
}

/* Where own rows are, and what is known of them. */
static __device__ inline void rows_find(struct step *s, int first, int count)
{
  const struct step_args *a = s->a;
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += THREADS) {
    long long entry = a->entry[s->item->first + first + i];
    s->entry[i] = entry;
    s->row[i] = (int)(entry / a->s);
    s->block[i] = (int)((a->row + s->row[i]) >> 12);
#pragma unroll
    for (int m = 0; m < D; m++) s->t[i * D + m] = a->codes[entry * D + m];
  }
}

/* Bring own rows from position `first` on, as many as fit, unless they are there. */
static __device__ __noinline__ void rows_bring(struct step *s, int first)
{
  const struct step_args *a = s->a;
  int left = step_hi(s) - first, count = left < a->capacity ? left : a->capacity;
  if (s->first == first) return;
  __syncthreads();
  s->first = first;
  s->count = count;
  rows_find(s, first, count);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x / WARP; i < count; i += WARPS) {
    const double *from = a->residual + (long long)s->row[i] * a->p;
#pragma unroll 4
    for (int c = threadIdx.x % WARP; c < a->p; c += WARP)
      async_copy8(s->rows + i * s->pitch + c, from + c);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += THREADS) {
    int end = i + 1;
    while (end < count && s->block[end] == s->block[i]) end++;
    s->end[i] = end;
  }
  async_commit();
  ASYNC_WAIT(0);
  __syncthreads();
}

/* The product of a row with vector v: of the frame, of itself, with direction j; the first time all
 * of them, then the last alone. */
static __device__ inline void row_multiply(const struct step *s, int i, int v, int j, int is_first)
{
  const struct step_args *a = s->a;
  const double *row = s->rows + i * s->pitch;
  double *out = values_of(s, s->first + i);
  if (!is_first || v == D + 1) {
    out[2 * D + j] = chain(row, s->e + j * s->pitch, a->p);
  } else if (v < D) {
    out[v] = s->t[i * D + v];
    out[D + v] = chain(row, s->u_old + v * s->pitch, a->p);
  } else {
    double norm = 0;
#pragma unroll
    for (int m = 0; m < D; m++) norm = fma(s->t[i * D + m], s->t[i * D + m], norm);
    out[2 * D + a->q] = fma(a->rho, norm, chain(row, row, a->p));
  }
}

/* Products of vectors: the first time of the frame with itself, then of direction j with the frame
 * and with the directions up to it. */
static __device__ inline void vectors_multiply(struct step *s, int number, int j, int is_first)
{
  int p = s->a->p, pitch = s->pitch, q = s->a->q;
  if (is_first && number < D * D) {
    s->uu[number] = chain(s->u_old + number / D * pitch, s->u_old + number % D * pitch, p);
    return;
  }
  number -= is_first ? D * D : 0;
  const double *e = s->e + j * pitch;
  if (number < D) {
    s->ue[j * D + number] = chain(s->u_old + number * pitch, e, p);
  } else {
    int i = number - D;
    double product = chain(s->e + i * pitch, e, p);
    s->ee[j * q + i] = product;
    s->ee[i * q + j] = product;
  }
}

/* All products with direction j, which there is if j < kept; the first time also those with the
 * frame.  Every thread has a chain. */
static __device__ inline void products_find(struct step *s, int j, int is_first)
{
  int has = j < s->kept, vectors = (is_first ? D + 1 : 0) + has;
  int others = (is_first ? D * D : 0) + (has ? D + j + 1 : 0);
  int first = step_lo(s);
  do {
    int count = 0;
    if (first < step_hi(s)) {
      rows_bring(s, first);
      count = s->count;
    }
    int padded = (count + WARP - 1) / WARP * WARP;
#pragma unroll 1
    for (int task = threadIdx.x; task < vectors * padded + others; task += THREADS) {
      if (task >= vectors * padded)
        vectors_multiply(s, task - vectors * padded, j, is_first);
      else if (task % padded < count)
        row_multiply(s, task % padded, task / padded, j, is_first);
    }
    others = 0;
    first += s->a->capacity;
  } while (first < step_hi(s));
  __syncthreads();
}

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

/* Neighbouring columns of a row with the atom's old part added back, and of its new frame. */
enum { GROUP = D == 1 ? 8 : D == 2 ? 4 : 2 };
struct group {
  double x[GROUP], u_new[GROUP][D];
};

static __device__ inline void group_load(struct group *g, const struct step *s, const double *row,
                                         const double *t, int c)
{
  const double *u_old = in_shared(s->u_old) + c, *u_new = in_shared(s->u_new) + c;
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    g->x[i] = row[c + i];
#pragma unroll
    for (int m = 0; m < D; m++) {
      g->x[i] = fma(u_old[m * s->pitch + i], t[m], g->x[i]);
      g->u_new[i][m] = u_new[m * s->pitch + i];
    }
  }
}

/* Column after column, use(x, u_new): x is a row with the atom's old part added back.  A group of
 * columns is on its way while the one before is used. */
template <class Use>
static __device__ inline void row_walk(const struct step *s, const double *row, const double *t,
                                       Use use)
{
  const double *u_old = in_shared(s->u_old), *u_new = in_shared(s->u_new);
  int p = s->a->p, c = 0;
  struct group g, next;
  row = in_shared(row);
  if (p >= GROUP) {
    group_load(&g, s, row, t, 0);
#pragma unroll 1
    for (c = GROUP; c + GROUP <= p; c += GROUP) {
      group_load(&next, s, row, t, c);
#pragma unroll
      for (int i = 0; i < GROUP; i++) use(g.x[i], g.u_new[i]);
      g = next;
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++) use(g.x[i], g.u_new[i]);
  }
#pragma unroll 1
  for (; c < p; c++) {
    double x = row[c], u[D];
#pragma unroll
    for (int m = 0; m < D; m++) {
      x = fma(u_old[m * s->pitch + c], t[m], x);
      u[m] = u_new[m * s->pitch + c];
    }
    use(x, u);
  }
}

/* x with the new part taken away. */
static __device__ inline double moved(double x, const double *u_new, const double *t_new)
{
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(-u_new[m], t_new[m], x);
  return x;
}

/* Codes and objective of row i after the step, to out[1 + D]. */
static __device__ inline void row_try(struct step *s, int i, double *out)
{
  const struct step_args *a = s->a;
  const double *row = s->rows + i * s->pitch;
  double b[D] = {}, t[D], t_new[D], squares = 0, norm = 0;
#pragma unroll
  for (int m = 0; m < D; m++) t[m] = s->t[i * D + m];
  row_walk(s, row, t, [&](double x, const double *u_new) {
#pragma unroll
    for (int m = 0; m < D; m++) b[m] = fma(x, u_new[m], b[m]);
  });
  codes_solve(s, b, t_new);
  if (a->nonnegative && !(t_new[0] > 0)) t_new[0] = 0;
  row_walk(s, row, t, [&](double x, const double *u_new) {
    double e = moved(x, u_new, t_new);
    squares = fma(e, e, squares);
  });
#pragma unroll
  for (int m = 0; m < D; m++) norm = fma(t_new[m], t_new[m], norm);
  out[0] = fma(a->rho, norm, squares);
#pragma unroll
  for (int m = 0; m < D; m++) out[1 + m] = t_new[m];
}

/* Tries alternate between two places, so that nobody overwrites what another block still reads. */
static __device__ inline double *try_of(const struct step *s, int turn, int position)
{
  long long at = turn % 2 * s->a->class_rows + s->item->at + position;
  return s->a->tries + at * (1 + D);
}

static __device__ inline void rows_try(struct step *s, int turn)
{
#pragma unroll 1
  for (int first = step_lo(s); first < step_hi(s); first += s->a->capacity) {
    rows_bring(s, first);
#pragma unroll 1
    for (int i = threadIdx.x; i < s->count; i += THREADS) row_try(s, i, try_of(s, turn, first + i));
  }
}

/* Column c of row i, whose residual there is x, after the step. */
static __device__ inline double column_move(const struct step *s, double x, int i, int c)
{
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(s->u_old[m * s->pitch + c], s->t[i * D + m], x);
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(-s->u_new[m * s->pitch + c], s->t_new[i * D + m], x);
  return x;
}

/* The step is taken: residuals and codes of own rows. */
static __device__ inline void rows_keep(struct step *s, int turn)
{
  const struct step_args *a = s->a;
#pragma unroll 1
  for (int first = step_lo(s); first < step_hi(s); first += a->capacity) {
    rows_bring(s, first);
#pragma unroll 1
    for (int e = threadIdx.x; e < s->count * D; e += THREADS) {
      double t = __ldcg(try_of(s, turn, first + e / D) + 1 + e % D);
      s->t_new[e] = t;
      a->codes[s->entry[e / D] * D + e % D] = t;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x / WARP; i < s->count; i += WARPS) {
      double *to = a->residual + (long long)s->row[i] * a->p, *row = s->rows + i * s->pitch;
#pragma unroll 4
      for (int c = threadIdx.x % WARP; c < a->p; c += WARP) to[c] = column_move(s, row[c], i, c);
    }
  }
}

#endif
