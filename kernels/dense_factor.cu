/* SPDX-License-Identifier: BSD-3-Clause
 * dense_factor: the columns of one panel of a Cholesky factor (N.19).  All earlier columns have
 * been subtracted already, by dense_product.
 *
 * grid    ceil(rows below the square / FACTOR_ROWS), at least 1
 * block   FACTOR_THREADS, one row each: the rows of the square, then own rows below it
 * shared  struct shared
 * sums    a chain of fma for each entry, ascending columns, from the entry itself
 *
 * Every block factors the square (the panel's block on the diagonal) for itself, so that none waits
 * for another.  The first one writes it, to `corners`. */
#include "dense_rows.h"
#include "root.h"

struct shared {
  struct rows_shared rows;
  double pivot[2];
};

/* x / root.l, with the bits of a division. */
static __device__ inline double entry_of(double x, const struct root *root)
{
  int is_zero = __double_as_longlong(x) == 0; /* entries above the diagonal */
  if (root->is_usual & (is_usual(x) | is_zero)) return root_quotient(x, root);
  return x / root->l;
}

/* A thread's row: columns of the panel from `first` on, of which `has` exist, and where the
 * finished ones are written. */
struct line {
  int first, columns, has;
  double *to;
  long long stride;
};

/* Finish columns of all rows in registers, FACTOR_STEP at a time: short code, since every launch
 * loads it.  The row of the next pivot gets that pivot before other rows are updated by this
 * column.  Returns the number of finished columns, or the first bad one. */
static __device__ inline int leaf_factor(double leaf[FACTOR_LEAF], struct shared *s,
                                         const struct line *line, double *pivots)
{
  int thread = threadIdx.x, first = line->first;
  if (thread == first) s->pivot[0] = leaf[0];
  __syncthreads();
#pragma unroll 1
  for (int at = 0; at < FACTOR_LEAF; at += FACTOR_STEP) {
#pragma unroll
    for (int u = 0; u < FACTOR_STEP; u++) {
      int c = at + u, column = first + c;
      if (c == line->columns) return c;
      double pivot = s->pivot[u % 2];
      if (pivots && thread == 0) pivots[column] = pivot;
      if (!(pivot > 0 && pivot <= LARGEST)) return c;
      struct root root = root_of(pivot);
      if (!root.is_usual) root.l = sqrt(pivot);
      leaf[u] = thread == column ? root.l : entry_of(leaf[u], &root);
      if (thread < FACTOR_WIDTH) s->rows.l[column][thread] = leaf[u];
      if (thread == column + 1) s->pivot[(u + 1) % 2] = fma(-leaf[u], leaf[u], leaf[u + 1]);
      __syncthreads();
      leaf_update(leaf, &s->rows.l[column][first + at], u);
      column_keep(&s->rows, column, leaf[u]);
      if (c < line->has) line->to[column * line->stride] = leaf[u];
    }
#pragma unroll
    for (int c = FACTOR_STEP; c < FACTOR_LEAF; c++) leaf[c - FACTOR_STEP] = leaf[c];
  }
  return FACTOR_LEAF;
}

/* Set the line of a row for `width` columns of the panel from `first` on. */
static __device__ inline void line_set(struct line *l, int first, int width, int is_there,
                                       int is_square)
{
  int left = width - first, down = (int)threadIdx.x - first;
  l->first = first;
  l->columns = left < 0 ? 0 : left < FACTOR_LEAF ? left : FACTOR_LEAF;
  l->has = !is_there ? 0 : is_square && down < l->columns ? down + 1 : l->columns;
}

static __device__ inline void leaf_load(double leaf[FACTOR_LEAF], const double *at,
                                        long long stride, int has)
{
#pragma unroll
  for (int c = 0; c < FACTOR_LEAF; c++) leaf[c] = c < has ? at[c * stride] : 0;
}

extern "C" __global__ void __launch_bounds__(FACTOR_THREADS, 2)
    dense_factor(const __grid_constant__ struct factor_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  int thread = threadIdx.x, is_square = thread < FACTOR_WIDTH;
  int width = a.n - a.first < FACTOR_WIDTH ? a.n - a.first : FACTOR_WIDTH;
  int row = a.first + thread + (is_square ? 0 : blockIdx.x * FACTOR_ROWS), is_there = row < a.n;
  const double *from = a.s + row + a.first * a.stride;
  double leaf[FACTOR_LEAF], next[FACTOR_LEAF], *pivots = blockIdx.x ? 0 : a.pivots + a.first;
  struct line line = {0, 0, 0, a.s + row + a.first * a.stride, a.stride};
  if (is_square) {
    line.to = a.corners + (long long)a.first * FACTOR_WIDTH + thread;
    line.stride = FACTOR_WIDTH;
  }
  if (*a.good < a.n) return;
  line_set(&line, 0, width, is_there, is_square);
  leaf_load(next, from, a.stride, line.has);
#pragma unroll 1
  for (int first = 0; first < width; first += FACTOR_LEAF) {
    struct line after = line;
#pragma unroll
    for (int c = 0; c < FACTOR_LEAF; c++) leaf[c] = next[c];
    from += FACTOR_LEAF * a.stride;
    line_set(&after, first + FACTOR_LEAF, width, is_there, is_square);
    leaf_load(next, from, a.stride,
              after.has); /* loads the next leaf during the work on this one */
    leaf_catch_up(leaf, &s->rows, first);
    if (is_square && blockIdx.x) line.has = 0;
    int done = leaf_factor(leaf, s, &line, pivots);
    if (done < line.columns) {
      if (blockIdx.x == 0 && thread == 0) *a.good = a.first + first + done;
      return;
    }
    line = after;
  }
}
