/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: what a block knows, its own rows in shared memory, and what is computed row by
 * row.  Chains over columns are a thread's.
 *
 * -D STEP_D  vectors of a frame */
#ifndef STEP_ROWS_H
#define STEP_ROWS_H

#include "async_copy.h"
#include "step_chains.h"
#include "step_moved.h"
#include "step_types.h"
#include "warp.h"

#define LARGEST 1.7976931348623157e308

enum { THREADS = STEP_THREADS, WARPS = STEP_THREADS / WARP };

/* What a block waits for, where all rows are in shared memory: sums so far, complete ones, whole
 * ones. */
enum { HERE_OPEN, HERE_PARTS, HERE_SUMS, HERE_BARRIERS };

/* A block's part of an atom, itself in shared memory as its arrays are; vectors are `pitch` apart.
 * Thread 0 writes it. */
struct step {
  struct step_args a;
  long long first_entry;
  int atom, at;          /* at: where its rows begin among those of its class */
  int index, rank, size; /* of the atom in the launch, of the block in its cluster, blocks there */
  int n, pitch, kept;    /* n: rows; kept: directions */
  int is_here;           /* all rows of the atom are in the shared memory of its blocks */
  double *u_old, *e, *u_new;
  double *sums, *added; /* of step_system.h */
  double *uu, *ue, *ee, *factor, *pivot, *tt, *h, *l_new;
  double *schur, *whole, *diagonal, *beta, *scalar;
  double *total; /* of step_columns.h */
  int *start;
  /* Of step_here.h: */
  int own_first, own_end, continues, next;
  unsigned present;
  int joins, first_present;
  unsigned char left[STEP_GROUPS], right[STEP_GROUPS];
  unsigned long long barriers[HERE_BARRIERS];
  /* Own rows at positions lo .. hi - 1, of which first .. first + count - 1 are here: */
  int lo, hi, first, count;
  double *rows, *t, *t_new, *weight; /* weight: products with the last direction */
  long long *entry;
  int *row, *late; /* late: is the row one that the launch before changes? */
};

static __device__ inline int is_finite(double x)
{
  return fabs(x) <= LARGEST;
}

static __device__ inline int min_of(int x, int y)
{
  return x < y ? x : y;
}

static __device__ inline int max_of(int x, int y)
{
  return x > y ? x : y;
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

/* Which of the named rows have an atom of the launch before? */
static __device__ inline void rows_look(struct step *s)
{
  int lane = threadIdx.x % WARP;
#pragma unroll 1
  for (int i = threadIdx.x / WARP; i < s->count; i += WARPS) {
    const int *slots = s->a.slots + (long long)s->row[i] * s->a.s;
    int late = 0;
#pragma unroll 1
    for (int place = lane; place < s->a.s; place += WARP)
      late |= s->a.turns[slots[place]] == s->a.turn - 1;
    late = __any_sync(FULL_WARP, late);
    if (lane == 0) s->late[i] = late;
  }
}

/* Begin to bring the rows that are named, or of them the late ones. */
static __device__ inline void rows_order(struct step *s, int late_alone)
{
  int p = s->a.p;
#pragma unroll 1
  for (int i = threadIdx.x / WARP; i < s->count; i += WARPS) {
    if (late_alone && !s->late[i]) continue;
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
  rows_order(s, 0);
  rows_wait();
}

/* Column after column, use(x, u, v) with own row i's x and the columns of the vectors u and v, D
 * each. */
template <class Use>
static __device__ inline void row_walk(const struct step *s, int i, const double *u,
                                       const double *v, Use use)
{
  const double *vectors[1 + 2 * D] = {s->rows + i * s->pitch};
#pragma unroll
  for (int m = 0; m < D; m++) {
    vectors[1 + m] = u + m * s->pitch;
    vectors[1 + D + m] = v + m * s->pitch;
  }
  vectors_walk<1 + 2 * D>(vectors, s->a.p,
                          [&](const double *at) { use(at[0], at + 1, at + 1 + D); });
}

/* What own row i gives to sums, but for products with directions; squares: of its columns. */
static __device__ inline void row_give(const struct step *s, int i, const double *ur,
                                       double squares)
{
  double *out = values_of(s, s->first + i), norm = 0;
#pragma unroll
  for (int m = 0; m < D; m++) {
    double t = s->t[i * D + m];
    out[m] = t;
    out[D + m] = ur[m];
    norm = fma(t, t, norm);
  }
  out[2 * D + s->a.q] = fma(s->a.rho, norm, squares);
}

/* The products of own row i with the frame and with itself. */
static __device__ inline void row_begin(const struct step *s, int i)
{
  const double *vectors[1 + D] = {s->rows + i * s->pitch};
  double ur[D] = {}, squares = 0;
#pragma unroll
  for (int m = 0; m < D; m++) vectors[1 + m] = s->u_old + m * s->pitch;
  vectors_walk<1 + D>(vectors, s->a.p, [&](const double *at) {
#pragma unroll
    for (int m = 0; m < D; m++) ur[m] = fma(at[0], at[1 + m], ur[m]);
    squares = fma(at[0], at[0], squares);
  });
  row_give(s, i, ur, squares);
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

/* That of all own rows, which are here, and of the frame with itself: by some threads. */
static __device__ __noinline__ void rows_begin(struct step *shared, int thread, int threads)
{
  struct step *s = step_shared(shared);
  int padded = (s->hi - s->lo + WARP - 1) / WARP * WARP;
#pragma unroll 1
  for (int task = thread; task < padded + D * D; task += threads) {
    if (task >= padded)
      vectors_multiply(s, task - padded, 0, 1);
    else if (task < s->hi - s->lo)
      row_begin(s, task);
  }
}

/* The product with direction j, if there is one; the first time also those of row_begin(), unless
 * these are there. */
static __device__ inline void row_multiply(const struct step *s, int i, int j, int is_first)
{
  double *out = values_of(s, s->first + i), ur[D] = {}, er = 0, squares = 0;
  const double *e = s->e + (j < s->kept ? j : 0) * s->pitch;
  if (!is_first) {
    out[2 * D + j] = s->weight[i] = chain(s->rows + i * s->pitch, e, s->a.p);
    return;
  }
  row_walk(s, i, s->u_old, e, [&](double x, const double *u, const double *v) {
#pragma unroll
    for (int m = 0; m < D; m++) ur[m] = fma(x, u[m], ur[m]);
    er = fma(x, v[0], er);
    squares = fma(x, x, squares);
  });
  row_give(s, i, ur, squares);
  if (j < s->kept) out[2 * D + j] = er;
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

/* Right sides of the codes of row i after the step, for t_new. */
static __device__ inline void row_side(struct step *s, int i)
{
  double b[D] = {}, t[D];
#pragma unroll
  for (int m = 0; m < D; m++) t[m] = s->t[i * D + m];
  row_walk(s, i, s->u_old, s->u_new, [&](double x, const double *u_old, const double *u_new) {
    x = added_back(x, u_old, t);
#pragma unroll
    for (int m = 0; m < D; m++) b[m] = fma(x, u_new[m], b[m]);
  });
#pragma unroll
  for (int m = 0; m < D; m++) s->t_new[i * D + m] = b[m];
}

/* Codes from them, and the objective: to out[1 + D]. */
static __device__ inline void row_try(struct step *s, int i, double *out)
{
  double b[D], t[D], t_new[D], squares = 0, norm = 0;
#pragma unroll
  for (int m = 0; m < D; m++) {
    t[m] = s->t[i * D + m];
    b[m] = s->t_new[i * D + m];
  }
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
  for (int m = 0; m < D; m++) out[1 + m] = s->t_new[i * D + m] = t_new[m];
}

/* Tries alternate between two places, so that nobody overwrites what another block still reads. */
static __device__ inline double *try_of(const struct step *s, int turn, int position)
{
  long long at = turn % 2 * s->a.class_rows + s->at + position;
  return s->a.tries + at * (1 + D);
}

/* A product of two vectors of the new frame. */
static __device__ inline void frame_multiply(struct step *s, int number)
{
  int m = number / D, l = number % D;
  if (m >= l) s->l_new[number] = chain(s->u_new + m * s->pitch, s->u_new + l * s->pitch, s->a.p);
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
  int first = s->lo, others = D * D;
#pragma unroll 1
  do {
    if (first < s->hi) rows_bring(s, first);
    int count = first < s->hi ? s->count : 0, padded = (count + WARP - 1) / WARP * WARP;
#pragma unroll 1
    for (int task = threadIdx.x; task < padded + others; task += THREADS) {
      if (task >= padded)
        frame_multiply(s, task - padded);
      else if (task < count)
        row_side(s, task);
    }
    __syncthreads();
    if (others && !codes_factor(s)) return 0;
    others = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) row_try(s, i, try_of(s, turn, first + i));
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
