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

#define LARGEST 1.7976931348623157e308

enum {
  FRAME = ARROW_D,
  BORDER = ARROW_K,
  ROW = arrow_row_reals(FRAME, BORDER),
  TRIANGLE = FRAME * (FRAME + 1) / 2,
  U_AT = FRAME * BORDER, /* of a row */
  L_AT = U_AT + FRAME,
  PIVOTS_AT = L_AT + TRIANGLE
};

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

/* Is the size of x in [2^-400, 2^400)?  Then neither quotient() nor its parts leave the range. */
static __device__ inline int is_usual(double x)
{
  unsigned size = (unsigned)__double2hiint(x) & 0x7fffffffu;
  return size - ((1023u - 400) << 20) < (800u << 20);
}

/* a / b with the bits of a division, from y = 1 / b rounded, where a and b are usual.  The first
 * quotient is within two units of the last place, the second one within one; then its remainder is
 * exact, and adding it gives the rounded quotient (Markstein 1990). */
static __device__ inline double quotient(double a, double b, double y)
{
  double q = a * y;
  q = fma(fma(-b, q, a), y, q);
  return fma(fma(-b, q, a), y, q);
}

/* Row of the system at place q of the rows of part `part`, which has every `parts`th lane. */
static __device__ inline int row_number(int q, int part, int parts)
{
  int lanes = ARROW_LANES / parts;
  return parts == 1 ? q : q / lanes * ARROW_LANES + q % lanes * parts + part;
}

/* Begin to copy places first .. first + count - 1 of a part to shared memory; rows are numbered
 * from base. */
static __device__ inline void rows_order(double *to, const double *in, long long n, long long base,
                                         int first, int count, int part, int parts)
{
  const double *h = in, *b = h + n * (FRAME * FRAME), *g = b + n * (FRAME * BORDER);
  int thread = threadIdx.x % ARROW_TEAM, step = ARROW_TEAM;
#pragma unroll 4
  for (int e = thread; e < count * FRAME * BORDER; e += step) {
    int q = e / (FRAME * BORDER ? FRAME * BORDER : 1), at = e - q * FRAME * BORDER;
    long long row = base + row_number(first + q, part, parts);
    async_copy8(to + q * ROW + at, b + row * (FRAME * BORDER) + at);
  }
#pragma unroll 2
  for (int e = thread; e < count * FRAME * FRAME; e += step) {
    int q = e / (FRAME * FRAME), at = e % (FRAME * FRAME);
    long long row = base + row_number(first + q, part, parts);
    async_copy8(to + q * ROW + L_AT + at, h + row * (FRAME * FRAME) + at);
  }
#pragma unroll 2
  for (int e = thread; e < count * FRAME; e += step) {
    int q = e / FRAME, at = e % FRAME;
    long long row = base + row_number(first + q, part, parts);
    async_copy8(to + q * ROW + U_AT + at, g + row * FRAME + at);
  }
}

/* What a row's factor is for its columns. */
struct row_factor {
  double l[TRIANGLE], inverse[FRAME];
  int is_usual; /* its diagonal */
};

/* The factor of H + ridge I, which stands at `row`; packed with its pivots it takes H's place.
 * Returns whether a pivot is bad. */
static __device__ inline int row_decompose(double *row, double ridge, struct row_factor *f)
{
  double *l = f->l, pivot[FRAME];
  int bad = 0;
  f->is_usual = 1;
#pragma unroll
  for (int j = 0; j < FRAME; j++)
#pragma unroll
    for (int i = j; i < FRAME; i++) {
      l[packed(i, j)] = row[L_AT + j * FRAME + i];
      if (i == j) l[packed(i, j)] += ridge;
    }
#pragma unroll
  for (int j = 0; j < FRAME; j++) {
#pragma unroll
    for (int p = 0; p < j; p++)
#pragma unroll
      for (int i = j; i < FRAME; i++)
        l[packed(i, j)] = fma(-l[packed(j, p)], l[packed(i, p)], l[packed(i, j)]);
    pivot[j] = l[packed(j, j)];
    bad |= !is_good(pivot[j]);
    double root = sqrt(pivot[j]);
    l[packed(j, j)] = root;
    f->inverse[j] = 1.0 / root;
    f->is_usual &= is_usual(root);
#pragma unroll
    for (int i = j + 1; i < FRAME; i++) l[packed(i, j)] = l[packed(i, j)] / root;
  }
#pragma unroll
  for (int i = 0; i < TRIANGLE; i++) row[L_AT + i] = l[i];
#pragma unroll
  for (int j = 0; j < FRAME; j++) row[PIVOTS_AT + j] = pivot[j];
  return bad;
}

/* x[FRAME] <- L^-1 x. */
static __device__ inline void column_forward(double *x, const struct row_factor *f)
{
  double y[FRAME];
  int usual = f->is_usual;
#pragma unroll
  for (int i = 0; i < FRAME; i++) {
    double acc = x[i];
#pragma unroll
    for (int p = 0; p < i; p++) acc = fma(-f->l[packed(i, p)], y[p], acc);
    usual &= is_usual(acc);
    y[i] = quotient(acc, f->l[packed(i, i)], f->inverse[i]);
  }
  if (!usual) { /* zeros, or about to leave the range */
#pragma unroll
    for (int i = 0; i < FRAME; i++) {
      double acc = x[i];
#pragma unroll
      for (int p = 0; p < i; p++) acc = fma(-f->l[packed(i, p)], y[p], acc);
      y[i] = acc / f->l[packed(i, i)];
    }
  }
#pragma unroll
  for (int i = 0; i < FRAME; i++) x[i] = y[i];
}

/* H, B, g <- L and pivots, Y, u.  Returns whether a pivot is bad. */
static __device__ inline int row_whiten(double *row, double ridge)
{
  struct row_factor f;
  int bad = row_decompose(row, ridge, &f);
#pragma unroll 2
  for (int j = 0; j <= BORDER; j++) column_forward(row + j * FRAME, &f);
  return bad;
}

/* out[FRAME] <- the step of a whitened row; returns whether all of it is finite. */
static __device__ inline int row_step(const double *row, const double *border, double *out)
{
  double v[FRAME];
  int finite = 1;
#pragma unroll
  for (int m = 0; m < FRAME; m++) v[m] = row[U_AT + m];
#pragma unroll 4
  for (int j = 0; j < BORDER; j++)
#pragma unroll
    for (int m = 0; m < FRAME; m++) v[m] = fma(row[j * FRAME + m], border[j], v[m]);
#pragma unroll
  for (int i = FRAME - 1; i >= 0; i--) {
#pragma unroll
    for (int p = FRAME - 1; p > i; p--) v[i] = fma(-row[L_AT + packed(p, i)], v[p], v[i]);
    v[i] = v[i] / row[L_AT + packed(i, i)];
  }
#pragma unroll
  for (int m = 0; m < FRAME; m++) {
    finite &= is_finite(v[m]);
    out[m] = -v[m];
  }
  return finite;
}

/* The pivots of a lane's rows: places q, q + step, .. below count. */
static __device__ inline void pair_rows(struct pair *a, const double *rows, int q, int count,
                                        int step)
{
#pragma unroll 1
  for (; q < count; q += step)
#pragma unroll
    for (int m = 0; m < FRAME; m++) pair_pivot(a, rows[q * ROW + PIVOTS_AT + m]);
  pair_normalise(a);
}

#endif
