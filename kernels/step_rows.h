/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: the state of a block, its own rows, and the products that are computed row by
 * row.  The sums over columns of a row are made by one warp.
 *
 * -D STEP_D  vectors per frame */
#ifndef STEP_ROWS_H
#define STEP_ROWS_H

#include "async_copy.h"
#include "lane_products.h"
#include "root.h"
#include "step_moved.h"
#include "step_types.h"
#include "warp.h"

enum { THREADS = STEP_THREADS, WARPS = STEP_THREADS / WARP };

/* Indices into `scalar`. */
enum { SQUARE, BUMP, PAIR_M, PAIR_E, BEFORE, AFTER, NORM, BORDER_M, BORDER_E };

/* Barriers of a block whose rows are all in sight (step_here.h): open sums, complete sums, whole
 * sums, and lanes of the sums of a system. */
enum { HERE_OPEN, HERE_PARTS, HERE_SUMS, HERE_LANES, HERE_BARRIERS };

/* The state of a block that steps an atom.  The state and its arrays are in shared memory.  Vectors
 * are `pitch` apart.  Thread 0 writes the members. */
struct step {
  struct step_args a;
  long long first_entry;
  int atom, at; /* at: index of its first row among the rows of its class */
  /* The atom's index in the launch; the block's rank in its cluster; the blocks of the cluster. */
  int index, rank, size;
  int n, pitch, kept; /* n: rows; kept: directions */
  int is_here;        /* 1: every block of the cluster has all its rows in sight */
  double *u_old, *e, *u_new;
  double *sums, *added; /* used by step_sums.h */
  int shares;           /* calls of lanes_exchange() so far */
  double *parts;        /* parts of a candidate along frame and directions, and its square */
  double *uu, *ue, *ee, *factor, *pivot, *tt, *h, *l_new;
  double *schur, *whole, *diagonal, *beta, *scalar;
  double *total; /* used by step_columns.h, and for a block's lanes of sums */
  int *start;
  /* Used by step_here.h: */
  int own_first, own_end, continues;
  unsigned present;
  int width; /* the most columns that a block joins */
  unsigned long long barriers[HERE_BARRIERS];
  /* Own rows are at positions lo .. hi - 1.  Of these, first .. first + count - 1 are named, and
   * the first `held` of the named rows are held (step_types.h): */
  int lo, hi, first, count, held;
  double *rows, *t, *t_new, *weight; /* weight: products with the last direction */
  long long *entry;
  int *row, *late; /* late: 1 if the launch before this one changes the row */
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

/* Tell the compiler that a pointer is to shared memory. */
static __device__ inline struct step *step_shared(struct step *s)
{
  __builtin_assume(__isShared(s));
  return s;
}

/* The same for other arrays.  Do not call it again for a pointer that is computed from its result:
 * NVRTC 13.0 would then remove the code that follows. */
template <class T> static __device__ inline const T *in_shared(const T *x)
{
  __builtin_assume(__isShared(x));
  return x;
}

/* The numbers that the row at a position contributes to sums. */
static __device__ inline double *values_of(const struct step *s, int position)
{
  return s->a.values + (long long)(s->at + position) * step_values(D, s->a.q);
}

/* The entry at a position.  It may be read while an earlier launch still runs.  Such reads bypass
 * the L1 cache, which may hold old data. */
static __device__ inline long long entry_at(const struct step *s, int position)
{
  return __ldcg(s->a.entry + s->first_entry + position);
}

/* The largest number of rows that are named at a time. */
static __device__ inline int rows_at_once(const struct step *s)
{
  return s->is_here ? s->a.named : s->a.held;
}

/* Name own rows from position `first` on, as many as fit, and load their codes.  During a sweep no
 * other block changes these codes. */
static __device__ inline void rows_name(struct step *s, int first)
{
  int count = min_of(s->hi - first, rows_at_once(s));
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
  if (threadIdx.x == 0) s->held = min_of(count, s->a.held);
  __syncthreads();
}

/* late[i] <- 1 if held row i has an atom that the launch before this one steps, otherwise 0.  A
 * warp takes SOME rows at a time. */
static __device__ inline void rows_conflicts_find(struct step *s)
{
  enum { SOME = 4 };
  int lane = threadIdx.x % WARP, width = s->a.s, before = s->a.turn - 1;
#pragma unroll 1
  for (int first = threadIdx.x / WARP; first < s->held; first += SOME * WARPS) {
    int late[SOME] = {};
#pragma unroll 1
    for (int place = lane; place < width; place += WARP) {
      int atom[SOME];
#pragma unroll
      for (int r = 0; r < SOME; r++) {
        int i = min_of(first + r * WARPS, s->held - 1);
        atom[r] = s->a.slots[(long long)s->row[i] * width + place];
      }
#pragma unroll
      for (int r = 0; r < SOME; r++) late[r] |= s->a.turns[atom[r]] == before;
    }
#pragma unroll
    for (int r = 0; r < SOME; r++) {
      late[r] = __any_sync(FULL_WARP, late[r]);
      if (lane == 0 && first + r * WARPS < s->held) s->late[first + r * WARPS] = late[r];
    }
  }
}

/* Own rows are taken in parts: first the part that is in shared memory, then the others in cyclic
 * order.  So as few rows as possible are loaded again. */
struct parts_of_rows {
  int lo, rows, count, at; /* count: number of parts, of `rows` rows each; at: the next part */
};

static __device__ inline struct parts_of_rows parts_of(const struct step *s)
{
  int rows = rows_at_once(s), count = (s->hi - s->lo + rows - 1) / rows;
  return {s->lo, rows, count, s->first > s->lo ? (s->first - s->lo) / rows : 0};
}

/* The position where the next part begins. */
static __device__ inline int part_next(struct parts_of_rows *parts)
{
  int first = parts->lo + parts->at * parts->rows;
  parts->at = parts->at + 1 < parts->count ? parts->at + 1 : 0;
  return first;
}

/* Begin to copy the held rows; if late_alone, only those that are late. */
static __device__ inline void rows_order(struct step *s, int late_alone)
{
  int p = s->a.p;
#pragma unroll 1
  for (int i = threadIdx.x / WARP; i < s->held; i += WARPS) {
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

/* Name and copy the own rows from position `first` on, unless they are in shared memory already. */
static __device__ __noinline__ void rows_stage(struct step *shared, int first)
{
  struct step *s = step_shared(shared);
  if (s->first == first) return;
  __syncthreads();
  rows_name(s, first);
  rows_order(s, 0);
  rows_wait();
}

/* Rows that a warp does at a time. */
enum { ABREAST = D == 1 ? 4 : D == 2 ? 2 : 1 };

/* The range of the named own rows that are held (IS_HELD), or of those that are not held.  The held
 * rows come first. */
template <int IS_HELD> static __device__ inline int rows_begin(const struct step *s)
{
  return IS_HELD ? 0 : s->held;
}
template <int IS_HELD> static __device__ inline int rows_end(const struct step *s)
{
  return IS_HELD ? s->held : s->count;
}

/* Compute VALUES lane products for each row of the range above.  A warp does ABREAST rows together.
 * name(r, i): own row i is row r of the ABREAST.  add(c, x, acc): add column c, in which the rows
 * have x[ABREAST], to acc[ABREAST][VALUES].  put(i, v, product): store product v of row i; one lane
 * calls it. */
template <int VALUES, int IS_HELD, class Name, class Add, class Put>
static __device__ inline void rows_multiply(const struct step *s, Name name, Add add, Put put)
{
  enum { SUMS = lanes_padded(ABREAST * VALUES) };
  const double *rows = IS_HELD ? in_shared(s->rows) : s->a.residual;
  int begin = rows_begin<IS_HELD>(s), end = rows_end<IS_HELD>(s);
#pragma unroll 1
  for (int first = begin + threadIdx.x / WARP * ABREAST; first < end; first += WARPS * ABREAST) {
    int at[ABREAST]; /* not pointers: the compiler would forget that they are to shared memory */
    double acc[SUMS] = {};
#pragma unroll
    for (int r = 0; r < ABREAST; r++) {
      int i = min_of(first + r, end - 1);
      at[r] = IS_HELD ? i * s->pitch : in_shared(s->row)[i] * s->a.p;
      name(r, i);
    }
    lane_each<IS_HELD ? 4 : 2>(s->a.p, [&](int c) {
      double x[ABREAST];
#pragma unroll
      for (int r = 0; r < ABREAST; r++) x[r] = IS_HELD ? rows[at[r] + c] : __ldcg(rows + at[r] + c);
      add(c, x, acc);
    });
    int number = lanes_totals<SUMS>(acc), i = first + number / VALUES;
    if (threadIdx.x % (WARP / SUMS) == 0 && number < ABREAST * VALUES && i < end)
      put(i, number % VALUES, acc[0]);
  }
}

/* Column c of all vectors of a frame. */
static __device__ inline void frame_column(const struct step *s, const double *frame, int c,
                                           double *out)
{
#pragma unroll
  for (int m = 0; m < D; m++) out[m] = in_shared(frame)[m * s->pitch + c];
}

/* Add column c to the products of rows with the frame and with themselves; VALUES per row. */
template <int VALUES>
static __device__ inline void row_add(const struct step *s, int c, const double *x, double *acc)
{
  double u[D];
  frame_column(s, s->u_old, c, u);
#pragma unroll
  for (int r = 0; r < ABREAST; r++) {
    double *sum = acc + r * VALUES;
#pragma unroll
    for (int m = 0; m < D; m++) sum[m] = fma(x[r], u[m], sum[m]);
    sum[D] = fma(x[r], x[r], sum[D]);
  }
}

/* Store numbers that own row i contributes to sums.  v < D: its code v, and its product with vector
 * v of the frame.  v = D: its objective. */
static __device__ inline void row_give(const struct step *s, int i, int v, double product)
{
  double *out = values_of(s, s->first + i), norm = 0;
  if (v < D) {
    out[v] = s->t[i * D + v];
    out[D + v] = product;
    return;
  }
#pragma unroll
  for (int m = 0; m < D; m++) norm = fma(s->t[i * D + m], s->t[i * D + m], norm);
  out[2 * D + s->a.q] = fma(s->a.rho, norm, product);
}

/* A warp computes product `number` of two vectors.  If is_first, the first D times D products are
 * those of the frame with itself.  Then follow the products of direction j with the frame, and with
 * directions 0 .. j. */
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
  double product = lane_product(x, y, s->a.p);
  if (threadIdx.x % WARP == 0) *to = *mirror = product;
}

/* The products of rows with the frame, with themselves and, if it exists, with direction j.  The
 * products with direction j are also the weights. */
template <int IS_HELD> static __device__ inline void rows_multiply_all(const struct step *s, int j)
{
  enum { VALUES = D + 2 };
  const double *e = in_shared(s->e + (j < s->kept ? j : 0) * s->pitch);
  rows_multiply<VALUES, IS_HELD>(
      s, [](int, int) {},
      [&](int c, const double *x, double *acc) {
        double y = e[c];
        row_add<VALUES>(s, c, x, acc);
#pragma unroll
        for (int r = 0; r < ABREAST; r++)
          acc[r * VALUES + D + 1] = fma(x[r], y, acc[r * VALUES + D + 1]);
      },
      [&](int i, int v, double product) {
        if (v <= D)
          row_give(s, i, v, product);
        else if (j < s->kept)
          values_of(s, s->first + i)[2 * D + j] = s->weight[i] = product;
      });
}

/* The products of rows with direction j only; they are also the weights. */
template <int IS_HELD> static __device__ inline void rows_multiply_one(const struct step *s, int j)
{
  const double *e = in_shared(s->e + j * s->pitch);
  rows_multiply<1, IS_HELD>(
      s, [](int, int) {},
      [&](int c, const double *x, double *acc) {
        double y = e[c];
#pragma unroll
        for (int r = 0; r < ABREAST; r++) acc[r] = fma(x[r], y, acc[r]);
      },
      [&](int i, int, double product) {
        values_of(s, s->first + i)[2 * D + j] = s->weight[i] = product;
      });
}

/* The products of rows with direction j, if it exists (j < kept).  For j = 0 also the products of
 * rows with the frame and with themselves. */
template <int IS_HELD> static __device__ inline void rows_products(const struct step *s, int j)
{
  if (j == 0)
    rows_multiply_all<IS_HELD>(s, j);
  else if (j < s->kept)
    rows_multiply_one<IS_HELD>(s, j);
}

static __device__ __noinline__ void far_products(struct step *shared, int j)
{
  rows_products<0>(step_shared(shared), j);
  __syncthreads();
}

/* The products of vectors and of held rows for direction j.  If rows are not in sight, all own rows
 * are held, part after part.  Otherwise far_products() does the own rows that are not held. */
static __device__ __noinline__ void products_find(struct step *shared, int j)
{
  struct step *s = step_shared(shared);
  int is_first = j == 0, others = (is_first ? D * D : 0) + (j < s->kept ? D + j + 1 : 0);
#pragma unroll 1
  for (int number = WARPS - 1 - threadIdx.x / WARP; number < others; number += WARPS)
    vectors_multiply(s, number, j, is_first);
  struct parts_of_rows parts = parts_of(s);
#pragma unroll 1
  for (int i = 0; i < parts.count; i++) {
    rows_stage(s, part_next(&parts));
    rows_products<1>(s, j);
  }
  __syncthreads();
}

#endif
