/* SPDX-License-Identifier: BSD-3-Clause
 * dense_factor: the columns of one panel of a Cholesky factor (N.19).  All earlier columns have
 * been subtracted already, by dense_product.
 *
 * grid    ceil(rows below the square / FACTOR_ROWS), at least 1
 * block   FACTOR_THREADS, one row each: the rows of the square, then FACTOR_ROWS rows below it, as
 *         far as they exist
 * shared  struct shared
 * sums    a chain of fma for each entry, ascending columns, from the entry itself
 *
 * Every block factors the square (the panel's block on the diagonal) for itself, so that no block
 * waits for another.  The first block writes the factored square to `corners`. */
#include "dense_rows.h"
#include "root.h"

struct shared {
  struct rows_shared rows;
  double pivot; /* the first pivot of a leaf */
  /* The entries of the next pivot's row in this column and in the next one; two buffers. */
  double next[2][2];
};

/* May root_quotient() divide x by the root? */
static __device__ inline int is_quick(double x, const struct root *root)
{
  int is_zero = __double_as_longlong(x) == 0; /* entries above the diagonal */
  return root->is_usual & (is_usual(x) | is_zero);
}

/* A thread's row of a leaf.  The leaf has `columns` columns of the panel from `first` on; the row
 * has the first `has` of them.  Finished entries are written to `to`, `stride` apart. */
struct line {
  int first, columns, has;
  double *to;
  long long stride;
};

/* Finish the columns of a leaf for all rows, in registers.  The loop is unrolled by FACTOR_STEP
 * columns only, since every launch loads its code.  Returns the number of finished columns, which
 * is also the index of the first bad one.
 *
 * The chain of pivots decides the time, so no link of it waits for a barrier.  Every thread has the
 * entries `below` and `corner` of the next pivot's row, which the thread of that row stored before
 * the previous barrier.  From these, every thread computes the next pivot, `after`, for itself.  It
 * begins the root and makes quotients before it knows whether their short forms hold. */
static __device__ inline int leaf_factor(double leaf[FACTOR_LEAF], struct shared *s,
                                         const struct line *line, double *pivots)
{
  int thread = threadIdx.x, first = line->first, writes = pivots && thread == 0;
  double *to = line->to + first * line->stride;
  if (thread == first) s->pivot = leaf[0];
  if (thread == first + 1) s->next[0][0] = leaf[0], s->next[0][1] = leaf[1];
  __syncthreads();
  double pivot = s->pivot, below = s->next[0][0], corner = s->next[0][1];
  struct root root = root_of(pivot);
  double quick = root_quotient(leaf[0], &root), quick_below = root_quotient(below, &root);
#pragma unroll 1
  for (int at = 0; at < FACTOR_LEAF; at += FACTOR_STEP) {
#pragma unroll
    for (int u = 0; u < FACTOR_STEP; u++) {
      int c = at + u, column = first + c, is_last = c + 1 == FACTOR_LEAF;
      double after = fma(-quick_below, quick_below, corner), estimate = root_estimate(after);
      int is_good = (pivot > 0) & (pivot <= LARGEST), is_there = c < line->columns;
      double *next = s->next[(u + 1) % 2];
      if (writes & is_there) pivots[column] = pivot;
      if (!(is_good & is_there)) return c;
      if (!(is_quick(leaf[u], &root) & is_quick(below, &root))) {
        if (!root.is_usual) root.l = sqrt(pivot);
        if (!is_quick(leaf[u], &root)) quick = leaf[u] / root.l;
        if (!is_quick(below, &root)) quick_below = below / root.l;
        after = fma(-quick_below, quick_below, corner);
        estimate = root_estimate(after);
      }
      leaf[u] = thread == column ? root.l : quick;
      if (thread < FACTOR_WIDTH) s->rows.l[column][thread] = leaf[u];
      if (thread == column + 2) {
        next[0] = fma(-leaf[u], quick_below, leaf[u + 1]);
        next[1] = fma(-leaf[u], leaf[u], leaf[u + 2]);
      }
      __syncthreads();
      below = is_last ? 0 : next[0];
      corner = is_last ? 1 : next[1];
      pivot = after;
      root = root_from(after, estimate);
      leaf_update(leaf, &s->rows.l[column][first + at], u);
      quick = root_quotient(leaf[u + 1], &root);
      quick_below = root_quotient(below, &root);
      column_keep(&s->rows, column, leaf[u]);
      if (c < line->has) *to = leaf[u];
      to += line->stride;
    }
#pragma unroll
    for (int c = FACTOR_STEP; c < FACTOR_LEAF; c++) leaf[c - FACTOR_STEP] = leaf[c];
  }
  return FACTOR_LEAF;
}

/* Set the line of a row for the leaf that begins at column `first` of a panel of `width`
 * columns. */
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
