/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: sums over its rows, column by column, by the tree of (N.0).
 * A block has some of the columns.  A thread has one column and one group of sum blocks.  It adds
 * the chain of each sum block of the group, and joins the chains.  Then the groups are joined.  Sum
 * blocks without rows are left out. */
#ifndef STEP_COLUMNS_H
#define STEP_COLUMNS_H

#include "step_rows.h"

/* The nodes of the tree that are not joined yet, from left to right.  Two neighbours meet at a
 * level: the highest bit in which the numbers of their sum blocks differ.  `levels` has a bit for
 * each of these levels, which descend from left to right.  Before a level is added, nodes that meet
 * at lower levels are joined. */
struct stack {
  int any, last; /* any: it has nodes; last: the last sum block so far */
  unsigned levels;
  double node[STEP_LEVELS];
};

static __device__ inline void stack_join(struct stack *s, int level)
{
#pragma unroll 1
  while (s->levels && __ffs((int)s->levels) - 1 < level) {
    int top = __popc(s->levels);
    s->node[top - 1] = s->node[top - 1] + s->node[top];
    s->levels &= s->levels - 1;
  }
}

static __device__ inline void stack_push(struct stack *s, int block, double value)
{
  if (s->any) {
    int level = 31 - __clz(s->last ^ block);
    stack_join(s, level);
    s->levels |= 1u << level;
  }
  s->any = 1;
  s->last = block;
  s->node[__popc(s->levels)] = value;
}

static __device__ inline double stack_total(struct stack *s)
{
  stack_join(s, 32);
  return s->any ? s->node[0] : 0;
}

static __device__ inline int block_of(const struct step *s, int row)
{
  return (int)((s->a.row + row) >> 12);
}

static __device__ inline int group_of(const struct step *s, int row)
{
  return (block_of(s, row) >> s->a.group_shift) - s->a.group_first;
}

static __device__ inline int row_at(const struct step *s, int position)
{
  return (int)(entry_at(s, position) / s->a.s);
}

/* start[g] <- the position of the first row in group g or a later one. */
static __device__ inline void groups_find(struct step *s)
{
#pragma unroll 1
  for (int i = threadIdx.x; i <= s->n; i += THREADS) {
    int before = i > 0 ? group_of(s, row_at(s, i - 1)) : -1;
    int group = i < s->n ? group_of(s, row_at(s, i)) : s->a.groups;
#pragma unroll 1
    for (int g = before + 1; g <= group; g++) s->start[g] = i;
  }
}

/* The number of rows whose weights are in shared memory at a time: at most 16 KB of weights. */
enum { STAGE_ROWS = D == 1 ? 1024 : D == 2 ? 512 : 256 };

/* The rows at positions first .. first + count - 1 and their weights, in shared memory.  Weights
 * are the codes (j < 0, D per row) or the products with direction j (one per row). */
struct stage {
  int *row;       /* [STAGE_ROWS] */
  double *weight; /* [STAGE_ROWS][vectors] */
  int first, count;
};

static __device__ inline struct stage stage_of(const struct step *s)
{
  return {(int *)s->added, s->added + STAGE_ROWS / 2, 0, 0};
}

static __device__ inline void stage_fetch(const struct step *s, struct stage *g, int first, int j)
{
  int left = s->n - first;
  g->first = first;
  g->count = left < STAGE_ROWS ? left : STAGE_ROWS;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < g->count; i += THREADS) {
    long long entry = entry_at(s, first + i);
    g->row[i] = (int)(entry / s->a.s);
    if (j >= 0) g->weight[i] = __ldcg(values_of(s, first + i) + 2 * D + j);
#pragma unroll
    for (int m = 0; m < D && j < 0; m++) g->weight[i * D + m] = __ldcg(s->a.codes + entry * D + m);
  }
  __syncthreads();
}

/* A thread's sum over the rows of a group in one column. */
struct column {
  const double *residual, *weight;
  int stride, begin, end; /* stride of the weights; positions of the rows */
  int block;              /* sum block of the open chain; -1: none is open */
  double chain;
  struct stack stack;
};

/* Push the open chain, if there is one, and open the chain of sum block `block`. */
static __device__ __noinline__ void column_advance(struct column *c, int block, double chain)
{
  if (c->block >= 0) stack_push(&c->stack, c->block, chain);
  c->block = block;
}

/* Add the rows of a stage.  Rows ascend, so if the first and the last of several rows are in the
 * same sum block, all of them are. */
static __device__ inline void column_add(const struct step *s, struct column *c,
                                         const struct stage *g)
{
  enum { AHEAD = 16 };
  int first = c->begin - g->first, end = c->end - g->first, stride = c->stride, now = c->block;
  int p = s->a.p;
  const int *row = in_shared(g->row);
  const double *weight = in_shared(c->weight), *residual = c->residual;
  double chain = c->chain;
  auto reach = [&](int r) {
    int block = block_of(s, row[r]);
    if (block == now) return;
    column_advance(c, block, chain);
    now = block;
    chain = 0;
  };
  first = first > 0 ? first : 0;
  end = end < g->count ? end : g->count;
#pragma unroll 1
  for (int r = first; r < end; r += AHEAD) {
    int count = min_of(end - r, AHEAD);
    if (block_of(s, row[r]) != now || block_of(s, row[r + count - 1]) != now) {
#pragma unroll 1
      for (int i = 0; i < count; i++) {
        double x = __ldcg(residual + (long long)row[r + i] * p);
        reach(r + i);
        chain = fma(x, weight[(r + i) * stride], chain);
      }
      continue;
    }
    double x[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      x[i] = __ldcg(residual + (long long)row[r + min_of(i, count - 1)] * p);
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
      if (i < count) chain = fma(x[i], weight[(r + i) * stride], chain);
  }
  c->chain = chain;
}

/* Join the sums of the groups in one column.  In `total` they are `width` apart. */
static __device__ inline double groups_join(const struct step *s, const double *total, int width)
{
  struct stack stack = {};
#pragma unroll 1
  for (int g = 0; g < s->a.groups; g++)
    if (s->start[g] < s->start[g + 1]) stack_push(&stack, g + s->a.group_first, total[g * width]);
  return stack_total(&stack);
}

/* Sums over all rows, weighted by their codes (j < 0, D sums) or by their products with direction
 * j.  out[D p] gets the columns of this block.  is_there: the first rows and weights are already in
 * shared memory. */
static __device__ __noinline__ void columns_sum(struct step *shared, int j, double *out,
                                                int is_there)
{
  struct step *s = step_shared(shared);
  int p = s->a.p, vectors = j < 0 ? D : 1, all = vectors * p, groups = s->a.groups;
  int lo = all / s->size * s->rank + min_of(all % s->size, s->rank);
  int hi = lo + all / s->size + (s->rank < all % s->size);
  int width = THREADS / groups, group = threadIdx.x / width;
  struct stage g = stage_of(s);
#pragma unroll 1
  for (int base = lo; base < hi; base += width) {
    int wide = min_of(hi - base, width), v = base + threadIdx.x % width;
    int is_mine = group < groups && v < hi;
    struct column c = {};
    c.residual = s->a.residual + v % p;
    c.weight = g.weight + v / p;
    c.stride = vectors;
    c.begin = is_mine ? s->start[group] : 0;
    c.end = is_mine ? s->start[group + 1] : 0;
    c.block = -1;
#pragma unroll 1
    for (int first = 0; first < s->n; first += STAGE_ROWS) {
      if (is_there)
        g.count = min_of(s->n, STAGE_ROWS);
      else
        stage_fetch(s, &g, first, j);
      is_there = 0;
      column_add(s, &c, &g);
    }
    if (c.block >= 0) stack_push(&c.stack, c.block, c.chain);
    if (is_mine) s->total[group * width + threadIdx.x % width] = stack_total(&c.stack);
    __syncthreads();
    if (threadIdx.x < wide) out[v] = groups_join(s, s->total + threadIdx.x, width);
    __syncthreads();
  }
}

/* The sums of a turn (one call of columns_sum()).  Turns use two buffers alternately, so that no
 * block overwrites sums that another block still reads. */
static __device__ inline double *sums_of(const struct step *s, int turn)
{
  long long items = gridDim.x / s->size;
  return s->a.sums + (turn % 2 * items + s->index) * D * s->a.p;
}

#endif
