/* SPDX-License-Identifier: BSD-3-Clause
 * column_sums: chains of x - shift and of its square over the rows of each sum block, which is
 * a.block consecutive rows of the dataset.
 * grid    (blocks of columns, sum blocks that have some of the rows)
 * block   COLUMN_THREADS threads, one column each
 * shared  none
 * sums    a chain over the rows of a sum block, ascending.  The chain of the first sum block begins
 *         from `from`, the others from 0.  Multiply, then add, in f64 */
#include "types.h"

struct chain {
  double sum, squares;
};

__device__ static void add(struct chain *c, float x, double shift)
{
  double t = __dsub_rn((double)x, shift);
  c->sum = __dadd_rn(c->sum, t);
  c->squares = __dadd_rn(c->squares, __dmul_rn(t, t));
}

/* The next rows are loaded while the current ones are added. */
__device__ static void rows_add(struct chain *c, const float *x, long long p, int n, double shift)
{
  float now[COLUMN_AHEAD];
  int whole = n / COLUMN_AHEAD * COLUMN_AHEAD;
#pragma unroll
  for (int i = 0; i < COLUMN_AHEAD; i++) now[i] = i < whole ? x[i * p] : 0;
  for (int at = 0; at < whole; at += COLUMN_AHEAD) {
    const float *next = x + (at + COLUMN_AHEAD) * p;
    int more = at + COLUMN_AHEAD < whole;
#pragma unroll
    for (int i = 0; i < COLUMN_AHEAD; i++) {
      float value = now[i];
      if (more) now[i] = next[i * p];
      add(c, value, shift);
    }
  }
  for (int at = whole; at < n; at++) add(c, x[at * p], shift);
}

extern "C" __global__ void column_sums(const __grid_constant__ struct column_args a)
{
  int column = blockIdx.x * COLUMN_THREADS + threadIdx.x, index = blockIdx.y;
  if (column >= a.count) return;
  long long before = a.first % a.block; /* rows of the first sum block in earlier calls */
  long long begin = index ? (long long)index * a.block - before : 0;
  long long end = (long long)(index + 1) * a.block - before;
  end = end < a.n ? end : a.n;
  struct chain c = {0, 0};
  if (index == 0) c.sum = a.from[column], c.squares = a.from[a.count + column];
  rows_add(&c, a.rows + begin * a.p + a.begin + column, a.p, (int)(end - begin), a.shift[column]);
  int ends = (a.first + end) % a.block == 0 || a.first + end == a.all;
  if (ends) {
    double *to = a.ended + 2ll * index * a.count;
    to[column] = c.sum, to[a.count + column] = c.squares;
  }
  if (index < (int)gridDim.y - 1) return;
  a.to[column] = ends ? 0 : c.sum;
  a.to[a.count + column] = ends ? 0 : c.squares;
}
