/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: sums over its rows, column by column, by the tree of (N.0).
 *
 * A block adds its own rows; what is left are nodes on a stack.  Where two of them meet there is a
 * level: the highest bit in which the sum blocks differ that meet there.  They are joined before a
 * higher level follows, unless sum blocks of others may belong between: these levels are open, rise,
 * and stand below all others, which fall.  Sum blocks without rows are not there. */
#ifndef STEP_NODES_H
#define STEP_NODES_H

#include "step_rows.h"

struct stack {
  int any, begin, last; /* the sum block that it begins with (0: with the first of all), and ends */
  unsigned open, levels; /* bits */
};

/* The number of nodes below the highest one. */
static __device__ inline int stack_top(const struct stack *s)
{
  return __popc(s->open) + __popc(s->levels);
}

/* Node `at` of the nodes of block `rank` of the cluster, column `column` of D p. */
static __device__ inline double *node_of(const struct step *s, int turn, int rank, int at,
                                         int column)
{
  int width = D * s->a->p;
  long long items = gridDim.x / s->size;
  long long block = (turn % 2 * items + s->index) * s->size + rank;
  return s->a->nodes + (block * (s->a->levels + 1) + at) * width + column;
}

static __device__ inline struct step_run *run_of(const struct step *s, int turn, int rank)
{
  long long items = gridDim.x / s->size;
  return s->a->runs + (turn % 2 * items + s->index) * s->size + rank;
}

/* Join what meets below a level.  nodes[at * step] is node `at`. */
static __device__ inline void stack_join(struct stack *s, int level, double *nodes, int step)
{
  while (s->levels && __ffs((int)s->levels) - 1 < level) {
    int top = stack_top(s);
    nodes[(top - 1) * step] = nodes[(top - 1) * step] + nodes[top * step];
    s->levels &= s->levels - 1;
  }
}

/* A node follows that begins with sum block `first` and meets the stack at `level`. */
static __device__ inline void stack_push(struct stack *s, int level, int first, double value,
                                         double *nodes, int step)
{
  if (s->any) {
    stack_join(s, level, nodes, step);
    if (first >> (level + 1) << (level + 1) < s->begin)
      s->open |= 1u << level;
    else
      s->levels |= 1u << level;
  }
  s->any = 1;
  nodes[stack_top(s) * step] = value;
}

static __device__ inline int level_between(int last, int first)
{
  return 31 - __clz(last ^ first);
}

/* The chain of a sum block ends. */
static __device__ inline void block_push(struct stack *s, int block, double value, double *nodes,
                                         int step)
{
  if (!s->any) s->begin = block;
  stack_push(s, s->any ? level_between(s->last, block) : 0, block, value, nodes, step);
  s->last = block;
}

/* The sums of own rows, in one column, go on over the rows in shared memory. */
static __device__ inline void column_add(const struct step *s, struct stack *stack, int *block,
                                         double *acc, const double *column, const double *weight,
                                         int stride, double *nodes)
{
  int width = D * s->a->p;
#pragma unroll 1
  for (int i = 0; i < s->count; i = s->end[i]) {
    if (*block >= 0 && s->block[i] != *block) {
      block_push(stack, *block, *acc, nodes, width);
      *acc = 0;
    }
    *block = s->block[i];
    const double *at = in_shared(column), *by = in_shared(weight);
    double sum = *acc;
#pragma unroll 8
    for (int r = i; r < s->end[i]; r++) sum = fma(at[r * s->pitch], by[r * stride], sum);
    *acc = sum;
  }
}

/* weight <- the codes, or products with direction j, of the rows in shared memory. */
static __device__ inline const double *weights_bring(struct step *s, int j)
{
  if (j < 0) return s->t;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < s->count; i += THREADS)
    s->weight[i] = __ldcg(values_of(s, s->first + i) + 2 * D + j);
  __syncthreads();
  return s->weight;
}

/* Sums of own rows weighted by their codes (j < 0: D of them) or by their products with direction
 * j; they become nodes. */
static __device__ __noinline__ void columns_sum(struct step *s, int j, int turn)
{
  int p = s->a->p, vectors = j < 0 ? D : 1, lo = step_lo(s), hi = step_hi(s);
  struct stack before = {}, after = {};
  int block_before = -1, block_after = -1;
#pragma unroll 1
  for (int first = lo; first < hi; first += s->a->capacity) {
    rows_bring(s, first);
    const double *weight = weights_bring(s, j);
    int is_last = first + s->count == hi;
#pragma unroll 1
    for (int v = threadIdx.x; v < vectors * p; v += THREADS) {
      struct stack stack = before;
      int block = block_before;
      double *nodes = node_of(s, turn, s->rank, 0, v), *open = nodes + s->a->levels * D * p;
      double acc = first > lo ? *open : 0;
      column_add(s, &stack, &block, &acc, s->rows + v % p, weight + v / p, vectors, nodes);
      *open = acc;
      if (is_last) block_push(&stack, block, acc, nodes, D * p);
      after = stack;
      block_after = block;
    }
    before = after;
    block_before = block_after;
  }
  if (threadIdx.x == 0) {
    struct step_run run = {after.any, after.begin, after.last, 0, after.open, after.levels, {}};
    *run_of(s, turn, s->rank) = run;
  }
}

/* The levels of a run, one after another. */
static __device__ inline int level_next(struct step_run *run)
{
  int level = run->open ? __ffs((int)run->open) - 1 : 31 - __clz((int)run->levels);
  if (run->open)
    run->open &= run->open - 1;
  else
    run->levels ^= 1u << level;
  return level;
}

/* What all blocks wrote. */
struct runs {
  struct step_run of[STEP_CLUSTER];
};

static __device__ inline void runs_read(const struct step *s, int turn, struct runs *runs)
{
#pragma unroll
  for (int r = 0; r < STEP_CLUSTER; r++) {
    const int4 *run = (const int4 *)run_of(s, turn, r < s->size ? r : 0);
    int4 ends = __ldcg(run), levels = __ldcg(run + 1);
    runs->of[r].any = r < s->size && ends.x;
    runs->of[r].first = ends.y;
    runs->of[r].last = ends.z;
    runs->of[r].open = (unsigned)levels.x;
    runs->of[r].levels = (unsigned)levels.y;
  }
}

/* The sum of all blocks' nodes in one column; the first two of each are read at once. */
static __device__ inline double column_total(const struct step *s, int turn, int column,
                                             const struct runs *runs)
{
  const double *first = node_of(s, turn, 0, 0, column);
  int width = D * s->a->p, block = (s->a->levels + 1) * width; /* in reals */
  double nodes[STEP_LEVELS], ahead[STEP_CLUSTER][2];
  struct stack stack = {};
#pragma unroll
  for (int r = 0; r < STEP_CLUSTER; r++)
#pragma unroll
    for (int at = 0; at < 2; at++)
      ahead[r][at] = runs->of[r].any ? __ldcg(first + r * block + at * width) : 0;
#pragma unroll 1
  for (int r = 0; r < s->size; r++) {
    struct step_run run = runs->of[r];
    int count = run.any ? __popc(run.open) + __popc(run.levels) : -1;
#pragma unroll 1
    for (int at = 0; at <= count; at++) {
      int level = at ? level_next(&run) : stack.any ? level_between(stack.last, run.first) : 0;
      double node = at < 2 ? ahead[r][at != 0] : __ldcg(first + r * block + at * width);
      stack_push(&stack, level, run.first, node, nodes, 1);
    }
    stack.last = run.any ? run.last : stack.last;
  }
  stack_join(&stack, 32, nodes, 1);
  return stack.any ? nodes[0] : 0;
}

/* out[p] <- the whole sum of vector m; all blocks have written their nodes. */
static __device__ __noinline__ void sum_take(struct step *s, int turn, int m, double *out)
{
  struct runs runs;
  runs_read(s, turn, &runs);
#pragma unroll 1
  for (int c = threadIdx.x; c < s->a->p; c += THREADS)
    out[c] = column_total(s, turn, m * s->a->p + c, &runs);
  __syncthreads();
}

#endif
