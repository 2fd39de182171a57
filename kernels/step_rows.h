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

/* A block's part of an atom, itself in shared memory as its arrays are; vectors are `pitch` apart.
 * Thread 0 writes it. */
struct step {
  struct step_args a;
  long long first_entry;
  int atom, at;          /* at: where its rows begin among those of its class */
  int index, rank, size; /* of the atom in the launch, of the block in its cluster, blocks there */
  int n, pitch, kept;    /* n: rows; kept: directions */
  double *u_old, *e, *u_new;
  double *sums, *added; /* of step_system.h */
  double *uu, *ue, *ee, *factor, *pivot, *tt, *h, *l_new;
  double *schur, *whole, *diagonal, *beta, *scalar;
  double *total; /* of step_columns.h */
  int *start;
  /* Own rows at positions lo .. hi - 1, of which first .. first + count - 1 are here: */
  int lo, hi, first, count;
  double *rows, *t, *t_new;
  long long *entry;
  int *row;
};

static __device__ inline int min_of(int x, int y)
{
  return x < y ? x : y;
}

/* Say to the compiler that something is in shared memory. */
static __device__ inline struct step *step_shared(struct step *s)
{
  __builtin_assume(__isShared(s));
  return s;
}

static __device__ inline const double *in_shared(const double *x)
{
  __builtin_assume(__isShared(x));
  return x;
}

/* What the row at a position gives to sums. */
static __device__ inline double *values_of(const struct step *s, int position)
{
  return s->a.values + (long long)(s->at + position) * step_values(D, s->a.q);
}

/* Neighbouring terms of a chain. */
enum { TERMS = 8 };
struct terms {
  double2 x[TERMS / 2], y[TERMS / 2];
};

static __device__ inline void terms_load(struct terms *t, const double *x, const double *y)
{
#pragma unroll
  for (int i = 0; i < TERMS / 2; i++) {
    t->x[i] = ((const double2 *)x)[i];
    t->y[i] = ((const double2 *)y)[i];
  }
}

static __device__ inline double terms_add(const struct terms *t, double acc)
{
#pragma unroll
  for (int i = 0; i < TERMS / 2; i++) {
    acc = fma(t->x[i].x, t->y[i].x, acc);
    acc = fma(t->x[i].y, t->y[i].y, acc);
  }
  return acc;
}

/* The chain of two vectors in shared memory.  What comes next is on its way while the present terms
 * are added. */
static __device__ __noinline__ double chain(const double *x, const double *y, int p)
{
  struct terms a, b;
  double acc = 0;
  int c = 0, whole = p / TERMS * TERMS;
  x = in_shared(x);
  y = in_shared(y);
  if (whole) terms_load(&a, x, y);
#pragma unroll 1
  for (; c + 2 * TERMS <= whole; c += 2 * TERMS) {
    terms_load(&b, x + c + TERMS, y + c + TERMS);
    acc = terms_add(&a, acc);
    if (c + 2 * TERMS < whole) terms_load(&a, x + c + 2 * TERMS, y + c + 2 * TERMS);
    acc = terms_add(&b, acc);
  }
  if (c < whole) acc = terms_add(&a, acc);
#pragma unroll 1
  for (c = whole; c < p; c++) acc = fma(x[c], y[c], acc);
  return acc;
}

/* The entry at a position.  What a launch finds before others have ended is read past the first
 * cache: it may hold what the launches before them found there. */
static __device__ inline long long entry_at(const struct step *s, int position)
{
  return __ldcg(s->a.entry + s->first_entry + position);
}

/* Which own rows stand at position `first` and after it, as many as fit, and their codes.  Nobody
 * else changes these during a sweep. */
static __device__ inline void rows_name(struct step *s, int first)
{
  int count = min_of(s->hi - first, s->a.capacity);
#pragma unroll 1
  for (int i = threadIdx.x; i < count; i += THREADS) {
    long long entry = entry_at(s, first + i);
    s->entry[i] = entry;
    s->row[i] = (int)(entry / s->a.s);
#pragma unroll
    for (int m = 0; m < D; m++) s->t[i * D + m] = __ldcg(s->a.codes + entry * D + m);
  }
  if (threadIdx.x == 0) s->first = first;
  if (threadIdx.x == 0) s->count = count;
  __syncthreads();
}

/* Begin to bring the rows that are named. */
static __device__ inline void rows_order(struct step *s)
{
  int p = s->a.p;
#pragma unroll 1
  for (int i = threadIdx.x / WARP; i < s->count; i += WARPS) {
    const double *from = s->a.residual + (long long)s->row[i] * p;
    double *to = s->rows + i * s->pitch;
    int lane = threadIdx.x % WARP;
#pragma unroll 4
    for (int c = 2 * lane; c < p && p % 2 == 0; c += 2 * WARP) async_copy16(to + c, from + c);
#pragma unroll 2
    for (int c = lane; c < p && p % 2 == 1; c += WARP) async_copy8(to + c, from + c);
  }
  async_commit();
}

static __device__ inline void rows_wait(void)
{
  ASYNC_WAIT(0);
  __syncthreads();
}

/* Bring them, unless they are there. */
static __device__ __noinline__ void rows_bring(struct step *shared, int first)
{
  struct step *s = step_shared(shared);
  if (s->first == first) return;
  __syncthreads();
  rows_name(s, first);
  rows_order(s);
  rows_wait();
}

/* Neighbouring columns of a row and of two sets of D vectors, u and v. */
enum { GROUP = D == 1 ? 4 : 2 };
struct group {
  double x[GROUP], u[D][GROUP], v[D][GROUP];
};

static __device__ inline void pairs_load(double to[GROUP], const double *from)
{
#pragma unroll
  for (int i = 0; i < GROUP; i += 2) {
    double2 pair = *(const double2 *)(from + i);
    to[i] = pair.x;
    to[i + 1] = pair.y;
  }
}

static __device__ inline void group_load(struct group *g, const double *row, const double *u,
                                         const double *v, int pitch)
{
  pairs_load(g->x, row);
#pragma unroll
  for (int m = 0; m < D; m++) pairs_load(g->u[m], u + m * pitch);
#pragma unroll
  for (int m = 0; m < D; m++) pairs_load(g->v[m], v + m * pitch);
}

template <class Use> static __device__ inline void group_use(const struct group *g, Use use)
{
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    double u[D], v[D];
#pragma unroll
    for (int m = 0; m < D; m++) {
      u[m] = g->u[m][i];
      v[m] = g->v[m][i];
    }
    use(g->x[i], u, v);
  }
}

/* Column after column, use(x, u, v) with own row i's x and the columns of the vectors u and v, D
 * each.  A group of columns is on its way while the one before is used. */
template <class Use>
static __device__ inline void row_walk(const struct step *s, int i, const double *u,
                                       const double *v, Use use)
{
  const double *row = in_shared(s->rows + i * s->pitch);
  int p = s->a.p, pitch = s->pitch, c = 0, whole = p / GROUP * GROUP;
  struct group a, b;
  u = in_shared(u);
  v = in_shared(v);
  if (whole) group_load(&a, row, u, v, pitch);
#pragma unroll 1
  for (; c + 2 * GROUP <= whole; c += 2 * GROUP) {
    int at = c + GROUP, next = c + 2 * GROUP;
    group_load(&b, row + at, u + at, v + at, pitch);
    group_use(&a, use);
    if (next < whole) group_load(&a, row + next, u + next, v + next, pitch);
    group_use(&b, use);
  }
  if (c < whole) group_use(&a, use);
#pragma unroll 1
  for (c = whole; c < p; c++) {
    double one[D], other[D];
#pragma unroll
    for (int m = 0; m < D; m++) {
      one[m] = u[m * pitch + c];
      other[m] = v[m * pitch + c];
    }
    use(row[c], one, other);
  }
}

/* The products of own row i with direction j, if there is one; the first time also with the frame
 * and with itself. */
static __device__ inline void row_multiply(const struct step *s, int i, int j, int is_first)
{
  double *out = values_of(s, s->first + i), ur[D] = {}, er = 0, squares = 0, norm = 0;
  const double *e = s->e + (j < s->kept ? j : 0) * s->pitch;
  if (!is_first) {
    out[2 * D + j] = chain(s->rows + i * s->pitch, e, s->a.p);
    return;
  }
  row_walk(s, i, s->u_old, e, [&](double x, const double *u, const double *v) {
#pragma unroll
    for (int m = 0; m < D; m++) ur[m] = fma(x, u[m], ur[m]);
    er = fma(x, v[0], er);
    squares = fma(x, x, squares);
  });
#pragma unroll
  for (int m = 0; m < D; m++) {
    double t = s->t[i * D + m];
    out[m] = t;
    out[D + m] = ur[m];
    norm = fma(t, t, norm);
  }
  if (j < s->kept) out[2 * D + j] = er;
  out[2 * D + s->a.q] = fma(s->a.rho, norm, squares);
}

/* Products of vectors: the first time of the frame with itself, then of direction j with the frame
 * and with the directions up to it.  Threads of a warp choose first, and then add side by side. */
static __device__ inline void vectors_multiply(struct step *s, int number, int j, int is_first)
{
  int pitch = s->pitch, q = s->a.q, rest = number - (is_first ? D * D : 0), i = rest - D;
  const double *x = s->u_old + number / D * pitch, *y = s->e + j * pitch;
  double *to = s->uu + number, *mirror = to;
  if (rest < 0) {
    y = s->u_old + number % D * pitch;
  } else if (i < 0) {
    x = s->u_old + rest * pitch;
    mirror = to = s->ue + j * D + rest;
  } else {
    x = s->e + i * pitch;
    to = s->ee + j * q + i;
    mirror = s->ee + i * q + j;
  }
  double product = chain(x, y, s->a.p);
  *to = product;
  *mirror = product;
}

/* All products with direction j, which there is if j < kept; the first time also those with the
 * frame.  Rows and pairs of vectors are a thread's each. */
static __device__ __noinline__ void products_find(struct step *shared, int j, int is_first)
{
  struct step *s = step_shared(shared);
  int others = (is_first ? D * D : 0) + (j < s->kept ? D + j + 1 : 0), first = s->lo;
  int has = is_first || j < s->kept;
#pragma unroll 1
  do {
    if (first < s->hi) rows_bring(s, first);
    int count = first < s->hi && has ? s->count : 0;
    int padded = (count + WARP - 1) / WARP * WARP;
#pragma unroll 1
    for (int task = threadIdx.x; task < padded + others; task += THREADS) {
      if (task >= padded)
        vectors_multiply(s, task - padded, j, is_first);
      else if (task < count)
        row_multiply(s, task, j, is_first);
    }
    others = 0;
    first += s->a.capacity;
  } while (first < s->hi);
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

/* x with the old part of the atom added back. */
static __device__ inline double added_back(double x, const double *u_old, const double *t)
{
#pragma unroll
  for (int m = 0; m < D; m++) x = fma(u_old[m], t[m], x);
  return x;
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
  double b[D] = {}, t[D], t_new[D], squares = 0, norm = 0;
#pragma unroll
  for (int m = 0; m < D; m++) t[m] = s->t[i * D + m];
  row_walk(s, i, s->u_old, s->u_new, [&](double x, const double *u_old, const double *u_new) {
    x = added_back(x, u_old, t);
#pragma unroll
    for (int m = 0; m < D; m++) b[m] = fma(x, u_new[m], b[m]);
  });
  codes_solve(s, b, t_new);
  if (s->a.nonnegative && !(t_new[0] > 0)) t_new[0] = 0;
  row_walk(s, i, s->u_old, s->u_new, [&](double x, const double *u_old, const double *u_new) {
    x = moved(added_back(x, u_old, t), u_new, t_new);
    squares = fma(x, x, squares);
  });
#pragma unroll
  for (int m = 0; m < D; m++) norm = fma(t_new[m], t_new[m], norm);
  out[0] = fma(s->a.rho, norm, squares);
#pragma unroll
  for (int m = 0; m < D; m++) out[1 + m] = t_new[m];
}

/* Tries alternate between two places, so that nobody overwrites what another block still reads. */
static __device__ inline double *try_of(const struct step *s, int turn, int position)
{
  long long at = turn % 2 * s->a.class_rows + s->at + position;
  return s->a.tries + at * (1 + D);
}

static __device__ __noinline__ void rows_try(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
#pragma unroll 1
  for (int first = s->lo; first < s->hi; first += s->a.capacity) {
    rows_bring(s, first);
#pragma unroll 1
    for (int i = threadIdx.x; i < s->count; i += THREADS) row_try(s, i, try_of(s, turn, first + i));
  }
}

/* Column c of row i after the step. */
static __device__ inline double column_move(const struct step *s, int i, int c)
{
  double u_old[D], u_new[D];
#pragma unroll
  for (int m = 0; m < D; m++) {
    u_old[m] = s->u_old[m * s->pitch + c];
    u_new[m] = s->u_new[m * s->pitch + c];
  }
  double x = added_back(s->rows[i * s->pitch + c], u_old, s->t + i * D);
  return moved(x, u_new, s->t_new + i * D);
}

/* The step is taken: residuals and codes of own rows. */
static __device__ __noinline__ void rows_keep(struct step *shared, int turn)
{
  struct step *s = step_shared(shared);
  const struct step_args *a = &s->a;
#pragma unroll 1
  for (int first = s->lo; first < s->hi; first += s->a.capacity) {
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
      double *to = a->residual + (long long)s->row[i] * a->p;
#pragma unroll 4
      for (int c = threadIdx.x % WARP; c < a->p; c += WARP) to[c] = column_move(s, i, c);
    }
  }
}

#endif
