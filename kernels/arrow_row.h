/* SPDX-License-Identifier: BSD-3-Clause
 * One row of an arrow system in shared memory, by one thread: factor and forward substitution
 * (N.7, N.8), its step (N.11), its pivots (N.13).
 *
 * -D ARROW_D, ARROW_K */
#ifndef ARROW_ROW_H
#define ARROW_ROW_H

#include "arrow_types.h"
#include "async_copy.h"
#include "pair.h"
#include "root.h"

enum {
  FRAME = ARROW_D,
  BORDER = ARROW_K,
  ROW = arrow_row_reals(FRAME, BORDER),
  TRIANGLE = FRAME * (FRAME + 1) / 2,
  U_AT = FRAME * BORDER, /* of a row */
  L_AT = U_AT + FRAME,
  COLUMNS = BORDER + 1, /* of Y and u */
  AT_ONCE = FRAME <= 2   ? 4
            : FRAME <= 4 ? 2
                         : 1 /* columns, so that one's waiting hides another's */
};

/* Rows in shared memory: those of a round of `1 << shift` lanes, pad reals, the next. */
struct rows {
  double *at, *pivots;
  int shift, pad;
};

static __device__ inline double *row_at(const struct rows *r, int q)
{
  return r->at + q * ROW + (q >> r->shift) * r->pad;
}

/* Entry (i, j), i >= j, of a packed factor. */
static __device__ inline int packed(int i, int j)
{
  return j * (2 * FRAME - j - 1) / 2 + i;
}

static __device__ inline int is_good(double pivot)
{
  return pivot > 0 && pivot <= LARGEST;
}

static __device__ inline int is_finite(double x)
{
  return fabs(x) <= LARGEST;
}

/* Row of the system at place q of the rows of part `part`, which has every (32 >> shift)th lane. */
static __device__ inline int row_number(int q, int part, int shift)
{
  int lane = q & ((1 << shift) - 1), parts = ARROW_LANES >> shift;
  return (q >> shift) * ARROW_LANES + lane * parts + part;
}

static __device__ inline void piece_order(double *to, const double *from)
{
  if (FRAME % 2)
    async_copy8(to, from);
  else
    async_copy16(to, from);
}

/* Begin to copy `size` numbers of each row, at `from` and what follows, to `place` of the rows; of
 * all rows, whose numbers then are their places, or of a part's. */
static __device__ inline void part_order(const struct rows *to, const double *from, int size,
                                         int place, int first, int count, int part, int all)
{
  const int wide = FRAME % 2 ? 1 : 2, pieces = size / wide, team = ARROW_TEAM;
  const int width = pieces ? pieces : 1, step = team / width;
  int thread = threadIdx.x % ARROW_TEAM;
  if (pieces > 0 && team % width == 0) { /* a thread has the same piece of every row */
    int q = thread / width, at = thread % width * wide;
    const double *here = from + (q * size + at);
    double *there = to->at + (place + at);
#pragma unroll 4
    for (; q < count; q += step, here += step * size) {
      if (!all) here = from + (row_number(first + q, part, to->shift) * size + at);
      piece_order(there + (row_at(to, q) - to->at), here);
    }
  } else if (pieces > 0) {
#pragma unroll 4
    for (int e = thread; e < count * pieces; e += team) {
      int q = (int)((unsigned)e / width), at = (e - q * pieces) * wide;
      int row = all ? q : row_number(first + q, part, to->shift);
      piece_order(row_at(to, q) + (place + at), from + (row * size + at));
    }
  }
}

/* Begin to copy places first .. first + count - 1 of a part to shared memory; rows are numbered
 * from base. */
static __device__ inline void rows_order(const struct rows *to, const double *in, long long n,
                                         long long base, int first, int count, int part)
{
  const double *h = in + base * (FRAME * FRAME), *b = in + n * (FRAME * FRAME);
  const double *g = b + n * (FRAME * BORDER) + base * FRAME;
  b += base * (FRAME * BORDER);
  if (to->shift == 5 && first == 0) {
    part_order(to, b, FRAME * BORDER, 0, first, count, part, 1);
    part_order(to, h, FRAME * FRAME, L_AT, first, count, part, 1);
    part_order(to, g, FRAME, U_AT, first, count, part, 1);
  } else {
    part_order(to, b, FRAME * BORDER, 0, first, count, part, 0);
    part_order(to, h, FRAME * FRAME, L_AT, first, count, part, 0);
    part_order(to, g, FRAME, U_AT, first, count, part, 0);
  }
}

/* What a row's factor is for its columns. */
struct row_factor {
  double l[TRIANGLE];
  struct divisor diagonal[FRAME];
  int is_usual; /* its diagonal */
};

/* to[count] <- from[count]; where d is even, 16 bytes at a time. */
static __device__ inline void reals_read(double *to, const double *from, int count)
{
#pragma unroll
  for (int i = 0; i < count; i += FRAME % 2 ? 1 : 2) {
    if (FRAME % 2) {
      to[i] = from[i];
    } else {
      double2 x = *(const double2 *)(from + i);
      to[i] = x.x;
      to[i + 1] = x.y;
    }
  }
}
static __device__ inline void reals_write(double *to, const double *from, int count)
{
#pragma unroll
  for (int i = 0; i < count; i += FRAME % 2 ? 1 : 2) {
    if (FRAME % 2)
      to[i] = from[i];
    else
      *(double2 *)(to + i) = make_double2(from[i], from[i + 1]);
  }
}

/* Column j of the factor, whose pivot is accumulated; returns whether the pivot is bad. */
static __device__ inline int factor_column(struct row_factor *f, int j)
{
  double *l = f->l, pivot = l[packed(j, j)];
  struct root r = root_of(pivot);
  f->is_usual &= is_usual(pivot);
  int plain = r.is_usual;
#pragma unroll
  for (int i = j + 1; i < FRAME; i++) plain &= is_usual(l[packed(i, j)]);
  if (!plain) r.l = sqrt(pivot);
  f->diagonal[j] = divisor_of(r.l);
#pragma unroll
  for (int i = j + 1; i < FRAME; i++)
    l[packed(i, j)] = plain ? root_quotient(l[packed(i, j)], &r) : l[packed(i, j)] / r.l;
  l[packed(j, j)] = r.l;
  return !is_good(pivot);
}

/* The factor of H + ridge I, which stands at `row` and gives it its place; pivots[FRAME] <- its
 * pivots, unless they are not wanted.  Returns whether a pivot is bad. */
static __device__ inline int row_decompose(double *row, double *pivots, double ridge,
                                           struct row_factor *f)
{
  double *l = f->l, h[FRAME * FRAME];
  int bad = 0;
  f->is_usual = 1;
  reals_read(h, row + L_AT, FRAME * FRAME);
#pragma unroll
  for (int j = 0; j < FRAME; j++)
#pragma unroll
    for (int i = j; i < FRAME; i++)
      l[packed(i, j)] = i == j ? h[j * FRAME + i] + ridge : h[j * FRAME + i];
#pragma unroll
  for (int j = 0; j < FRAME; j++) {
#pragma unroll
    for (int p = 0; p < j; p++)
#pragma unroll
      for (int i = j; i < FRAME; i++)
        l[packed(i, j)] = fma(-l[packed(j, p)], l[packed(i, p)], l[packed(i, j)]);
    if (pivots) pivots[j] = l[packed(j, j)];
    bad |= factor_column(f, j);
  }
#pragma unroll
  for (int i = 0; i < TRIANGLE; i++) row[L_AT + i] = l[i];
  return bad;
}

/* x[FRAME] <- L^-1 x, by divisions: zeros, or about to leave the range. */
static __device__ inline void column_divide(double *x, const struct row_factor *f)
{
#pragma unroll
  for (int i = 0; i < FRAME; i++) {
#pragma unroll
    for (int p = 0; p < i; p++) x[i] = fma(-f->l[packed(i, p)], x[p], x[i]);
    x[i] = x[i] / f->l[packed(i, i)];
  }
}

/* x[count][FRAME] <- L^-1 of each. */
static __device__ inline void columns_forward(double *x, int count, const struct row_factor *f)
{
  double y[AT_ONCE * FRAME];
  int usual = f->is_usual;
  reals_read(y, x, count * FRAME);
#pragma unroll
  for (int i = 0; i < FRAME; i++)
#pragma unroll
    for (int c = 0; c < count; c++) {
      double *own = y + c * FRAME;
#pragma unroll
      for (int p = 0; p < i; p++) own[i] = fma(-f->l[packed(i, p)], own[p], own[i]);
      usual &= is_usual(own[i]);
      own[i] = quotient(own[i], &f->diagonal[i]);
    }
  if (usual)
    reals_write(x, y, count * FRAME);
  else
#pragma unroll 1
    for (int c = 0; c < count; c++) column_divide(x + c * FRAME, f);
}

/* H, B, g <- L, Y, u, and pivots[FRAME], or NULL.  Returns whether a pivot is bad. */
static __device__ inline int row_whiten(double *row, double *pivots, double ridge)
{
  struct row_factor f;
  int bad = row_decompose(row, pivots, ridge, &f);
#pragma unroll 1
  for (int j = 0; j < COLUMNS / AT_ONCE; j++)
    columns_forward(row + j * AT_ONCE * FRAME, AT_ONCE, &f);
  if (COLUMNS % AT_ONCE)
    columns_forward(row + COLUMNS / AT_ONCE * AT_ONCE * FRAME, COLUMNS % AT_ONCE, &f);
  return bad;
}

/* out[FRAME] <- the step of a whitened row; returns whether all of it is finite. */
static __device__ inline int row_step(const double *row, const double *border, double *out)
{
  double v[FRAME], y[FRAME];
  int finite = 1;
  reals_read(v, row + U_AT, FRAME);
#pragma unroll 8
  for (int j = 0; j < BORDER; j++) {
    reals_read(y, row + j * FRAME, FRAME);
#pragma unroll
    for (int m = 0; m < FRAME; m++) v[m] = fma(y[m], border[j], v[m]);
  }
#pragma unroll
  for (int i = FRAME - 1; i >= 0; i--) {
#pragma unroll
    for (int p = FRAME - 1; p > i; p--) v[i] = fma(-row[L_AT + packed(p, i)], v[p], v[i]);
    v[i] = v[i] / row[L_AT + packed(i, i)];
  }
#pragma unroll
  for (int m = 0; m < FRAME; m++) {
    finite &= is_finite(v[m]);
    v[m] = -v[m];
  }
  reals_write(out, v, FRAME);
  return finite;
}

/* The pivots of a lane's rows: places q, q + step, .. below count. */
static __device__ inline void pair_rows(struct pair *a, const double *pivots, int q, int count,
                                        int step)
{
  enum { ROWS = 4 };
  double several[ROWS * FRAME];
#pragma unroll 1
  for (; q + (ROWS - 1) * step < count; q += ROWS * step) {
#pragma unroll
    for (int r = 0; r < ROWS * FRAME; r++)
      several[r] = pivots[(q + r / FRAME * step) * FRAME + r % FRAME];
    if (pair_pivots(a, several, ROWS * FRAME)) continue;
#pragma unroll 1
    for (int r = 0; r < ROWS * FRAME; r++)
      pair_pivot(a, pivots[(q + r / FRAME * step) * FRAME + r % FRAME]);
  }
#pragma unroll 1
  for (; q < count; q += step)
#pragma unroll
    for (int m = 0; m < FRAME; m++) pair_pivot(a, pivots[q * FRAME + m]);
  pair_normalise(a);
}

#endif
