/* SPDX-License-Identifier: BSD-3-Clause
 * arrow_lanes: solves short arrow systems of d = 1 (N.7 to N.13), one warp each, in registers.
 * Each lane of the warp is a lane of (N.12), and has all rows of that lane.
 *
 * grid    systems / (ARROW_BLOCK / WARP), rounded up
 * block   ARROW_BLOCK
 * sums    lanes, tree and chains of (N.12); every lane has all totals, and solves the border
 *
 * -D ARROW_D (1), ARROW_K (at most 4), and ARROW_ROUNDS, arrow_rounds() of the longest system
 *
 * The steps of a system that is not ok are invalid.  The CPU then solves the system. */
#define ARROW_TEAM WARP
#include "arrow_row.h"

enum { ROUNDS = ARROW_ROUNDS, ENTRIES = border_sums(BORDER) };

/* The rows of a lane; missing rows have the pivot 1. */
struct lane_rows {
  double y[ROUNDS][COLUMNS]; /* Y, then u */
  double l[ROUNDS];
};

/* The arrays of a system. */
struct parts {
  const double *h, *b, *g, *c, *g_b;
};

static __device__ inline struct parts parts_of(const double *in, int n)
{
  struct parts p = {in + n * BORDER, in, in + n + n * BORDER, in + n + n * COLUMNS};
  p.g_b = p.c + BORDER * BORDER;
  return p;
}

static __device__ inline void row_read(double *y, const struct parts *p, int row)
{
#pragma unroll
  for (int j = 0; j < BORDER; j++) y[j] = p->b[row * BORDER + j];
  y[BORDER] = p->g[row];
}

/* As row_read(), if all rows begin at multiples of 16 bytes. */
static __device__ inline void row_read_wide(double *y, const struct parts *p, int row)
{
#pragma unroll
  for (int j = 0; j < BORDER; j += 2) {
    double2 x = *(const double2 *)(p->b + row * BORDER + j);
    y[j] = x.x;
    y[j + 1] = x.y;
  }
  y[BORDER] = p->g[row];
}

/* Load rows as they are, and their pivots. */
static __device__ inline void rows_read(struct lane_rows *r, double pivot[ROUNDS],
                                        const struct parts *p, int n, double ridge)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int q = 0; q < ROUNDS; q++) {
    int row = q * WARP + lane;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) r->y[q][j] = 0;
    pivot[q] = 1;
    if (row >= n) continue;
    pivot[q] = p->h[row];
    /* For an odd n, row_read_wide() would be right, too.  But on 9.0 the kernel takes 1.4 times as
     * long with a constant condition here, and on 8.0 it spills registers with any other. */
    if (BORDER % 2 == 0 && (__CUDA_ARCH__ < 900 || n % 2 == 0))
      row_read_wide(r->y[q], p, row);
    else
      row_read(r->y[q], p, row);
  }
#pragma unroll
  for (int q = 0; q < ROUNDS; q++)
    if (q * WARP + lane < n) pivot[q] += ridge;
}

/* Reload a row, and whiten it by divisions. */
static __device__ inline void row_divide(struct lane_rows *r, int q, const struct parts *p,
                                         double ridge)
{
  int row = q * WARP + threadIdx.x % WARP;
  r->l[q] = sqrt(p->h[row] + ridge);
  row_read(r->y[q], p, row);
#pragma unroll
  for (int j = 0; j < COLUMNS; j++) r->y[q][j] = r->y[q][j] / r->l[q];
}

/* (N.7), (N.8) for all rows side by side; *pair <- the product of the pivots of all lanes.  Returns
 * whether a pivot is bad. */
static __device__ inline int rows_whiten(struct lane_rows *r, struct pair *pair,
                                         const struct parts *p, int n, double ridge)
{
  int lane = threadIdx.x % WARP, bad = 0;
  unsigned unusual = 0;
  double pivot[ROUNDS];
  rows_read(r, pivot, p, n, ridge);
  *pair = pair_unit();
#pragma unroll
  for (int q = 0; q < ROUNDS; q++) {
    struct divisor l = divisor_of(root_of(pivot[q]).l);
    int usual = is_usual(pivot[q]);
    r->l[q] = l.l;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      usual &= is_usual(r->y[q][j]);
      r->y[q][j] = quotient(r->y[q][j], &l);
    }
    bad |= !is_good(pivot[q]);
    pair_pivot(pair, pivot[q]);
    if (!usual && q * WARP + lane < n) unusual |= 1u << q;
  }
  pair_fold(pair, WARP);
#pragma unroll
  for (int q = 0; q < ROUNDS && unusual; q++)
    if (unusual >> q & 1) row_divide(r, q, p, ridge);
  return bad;
}

/* sum[ENTRIES] <- T by rows, then w. */
static __device__ inline void rows_add(double sum[ENTRIES + 1], const struct lane_rows *r, int n)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int e = 0; e < ENTRIES; e++) sum[e] = 0;
#pragma unroll
  for (int q = 0; q < ROUNDS; q++) {
    const double *y = r->y[q];
    if (q * WARP + lane >= n) continue;
#pragma unroll
    for (int i = 0; i <= BORDER; i++)
#pragma unroll
      for (int j = 0; j <= i && j < BORDER; j++)
        sum[i * (i + 1) / 2 + j] = fma(y[i], y[j], sum[i * (i + 1) / 2 + j]);
  }
#pragma unroll
  for (int half = WARP / 2; half >= 1; half /= 2)
#pragma unroll
    for (int e = 0; e < ENTRIES; e++) sum[e] += __shfl_xor_sync(FULL_WARP, sum[e], half);
}

/* a / d->l; if `careful`, by a division. */
static __device__ inline double divided(double a, const struct divisor *d, int careful)
{
  return careful ? a / d->l : quotient(a, d);
}

/* S in place of T, and the right side in place of w; a lane has one entry of C and g_b. */
static __device__ inline void border_make(double s[ENTRIES + 1], double c, double ridge)
{
#pragma unroll
  for (int j = 0; j < BORDER; j++) {
#pragma unroll
    for (int i = j; i < BORDER; i++) {
      double from = __shfl_sync(FULL_WARP, c, j * BORDER + i);
      s[i * (i + 1) / 2 + j] = (i == j ? from + ridge : from) - s[i * (i + 1) / 2 + j];
    }
    s[BORDER * (BORDER + 1) / 2 + j] -= __shfl_sync(FULL_WARP, c, BORDER * BORDER + j);
  }
}

/* step[BORDER] <- the step of the border, by quotients, or by divisions if `careful`.  l is S and
 * the right side, and becomes their factor.  *pair <- the product of the pivots; *good <- whether
 * they are good.  Returns whether all numbers were usual (root.h). */
static __device__ inline int border_try(double l[ENTRIES + 1], int careful, double *step,
                                        struct pair *pair, int *good)
{
  struct divisor root[BORDER + 1];
  int usual = 1;
  *good = 1;
  *pair = pair_unit();
#pragma unroll
  for (int j = 0; j < BORDER; j++) {
#pragma unroll
    for (int i = j; i <= BORDER; i++)
#pragma unroll
      for (int p = 0; p < j; p++)
        l[i * (i + 1) / 2 + j] =
            fma(-l[i * (i + 1) / 2 + p], l[j * (j + 1) / 2 + p], l[i * (i + 1) / 2 + j]);
    double pivot = l[j * (j + 1) / 2 + j];
    *good &= is_good(pivot);
    pair_pivot(pair, pivot);
    root[j] = divisor_of(careful ? sqrt(pivot) : root_of(pivot).l);
    usual &= is_usual(pivot);
#pragma unroll
    for (int i = j + 1; i <= BORDER; i++) {
      usual &= is_usual(l[i * (i + 1) / 2 + j]);
      l[i * (i + 1) / 2 + j] = divided(l[i * (i + 1) / 2 + j], &root[j], careful);
    }
  }
#pragma unroll
  for (int i = BORDER - 1; i >= 0; i--) {
    step[i] = l[BORDER * (BORDER + 1) / 2 + i];
#pragma unroll
    for (int p = BORDER - 1; p > i; p--) step[i] = fma(-l[p * (p + 1) / 2 + i], step[p], step[i]);
    usual &= is_usual(step[i]);
    step[i] = divided(step[i], &root[i], careful);
  }
  pair_normalise(pair);
  return usual;
}

/* The steps of the rows (N.11); returns whether all are finite. */
static __device__ inline int rows_step(const struct lane_rows *r, const double *step, double *out,
                                       int n)
{
  int lane = threadIdx.x % WARP, finite = 1;
#pragma unroll
  for (int q = 0; q < ROUNDS; q++) {
    double v = r->y[q][BORDER];
#pragma unroll
    for (int j = 0; j < BORDER; j++) v = fma(r->y[q][j], step[j], v);
    struct divisor l = divisor_of(r->l[q]);
    double t = quotient(v, &l);
    if (!is_usual(l.l) || !is_usual(v)) t = v / r->l[q];
    if (q * WARP + lane >= n) continue;
    finite &= is_finite(t);
    out[q * WARP + lane] = -t;
  }
  return finite;
}

extern "C" __global__ void __launch_bounds__(ARROW_BLOCK, ROUNDS *COLUMNS > 21    ? 3
                                                          : ROUNDS * COLUMNS > 14 ? 4
                                                                                  : 5)
    arrow_lanes(const __grid_constant__ struct arrow_args a)
{
  int index = (int)(blockIdx.x * (ARROW_BLOCK / WARP) + threadIdx.x / WARP);
  int lane = threadIdx.x % WARP;
  if (index >= a.count) return; /* the whole warp */
  struct arrow_atom atom = a.atoms[index];
  struct parts p = parts_of(a.in + atom.in, atom.n);
  struct lane_rows r;
  struct pair rows, border;
  double c = 0, sum[ENTRIES + 1], step[BORDER + 1];
  int good;
  if (lane < BORDER * COLUMNS) c = p.c[lane];
  if (lane == 0) later_prefetch(&a, index);
  int bad = rows_whiten(&r, &rows, &p, atom.n, atom.ridge_t);
  rows_add(sum, &r, atom.n);
  border_make(sum, c, atom.ridge_b);
  if (!border_try(sum, 0, step, &border, &good)) {
    rows_add(sum, &r, atom.n);
    border_make(sum, c, atom.ridge_b);
    border_try(sum, 1, step, &border, &good);
  }
#pragma unroll
  for (int j = 0; j < BORDER; j++) good &= is_finite(step[j]);
  bad |= !good;
  bad |= !rows_step(&r, step, a.out + atom.out, atom.n);
  bad = __any_sync(FULL_WARP, bad);
#pragma unroll
  for (int j = 0; j < BORDER; j++)
    if (lane == j) a.out[atom.out + atom.n + j] = step[j];
  if (lane > 0) return;
  pair_times(&rows, border);
  a.found[atom.number].m = rows.m;
  a.found[atom.number].e = rows.e;
  a.found[atom.number].not_ok = bad;
}
