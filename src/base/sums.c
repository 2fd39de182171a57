/* SPDX-License-Identifier: BSD-3-Clause
 * The tree is kept like a binary counter: pushing a block carries through the finished subtrees as
 * adding one carries through the set bits. */
#include "base/sums.h"

#include <math.h>
#include <string.h>

/* Add block number `blocks`, whose sum is value, to a tree of the blocks before it. */
static void tree_push(real *tree, gidx blocks, real value)
{
  int level = 0;
  for (; blocks >> level & 1; level++) value = tree[level] + value;
  tree[level] = value;
}

/* The sum over all blocks.  The sum of a subtree without a right half is the sum of its left half.
 * So the finished subtrees are added from the smallest, which is the rightmost, to the largest. */
static real tree_total(const real *tree, gidx blocks)
{
  real sum = 0;
  int have = 0;
  for (int level = 0; blocks >> level; level++)
    if (blocks >> level & 1) {
      sum = have ? tree[level] + sum : tree[level];
      have = 1;
    }
  return sum;
}

void row_sum_add(struct row_sum *s, real value)
{
  s->chain += value;
  s->rows++;
  if (s->rows % ROW_BLOCK == 0) {
    tree_push(s->tree, s->rows / ROW_BLOCK - 1, s->chain);
    s->chain = 0;
  }
}

real row_sum_total(const struct row_sum *s)
{
  gidx blocks = s->rows / ROW_BLOCK;
  if (s->rows % ROW_BLOCK == 0) return tree_total(s->tree, blocks);
  struct row_sum last = *s;
  tree_push(last.tree, blocks, last.chain);
  return tree_total(last.tree, blocks + 1);
}

void block_sum_push(real *tree, gidx *blocks, idx n, const real *chain)
{
  int level = 0;
  while (*blocks >> level & 1) level++;
  real *top = tree + (gidx)level * n;
  memcpy(top, chain, (size_t)n * sizeof *top);
  for (int below = 0; below < level; below++)
    for (idx i = 0; i < n; i++) top[i] = tree[(gidx)below * n + i] + top[i];
  ++*blocks;
}

void block_sum_total(const real *tree, gidx blocks, idx n, real *total)
{
  int have = 0;
  for (idx i = 0; i < n; i++) total[i] = 0;
  for (int level = 0; blocks >> level; level++) {
    if (!(blocks >> level & 1)) continue;
    const real *subtree = tree + (gidx)level * n;
    for (idx i = 0; i < n; i++) total[i] = have ? subtree[i] + total[i] : subtree[i];
    have = 1;
  }
}

void lanes_fold(real *lane)
{
  for (int half = LANE_COUNT / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) lane[i] += lane[i + half];
}

real lane_product(const real *a, const real *b, gidx n)
{
  real lane[LANE_COUNT] = {0};
  for (gidx i = 0; i < n; i++) lane[i % LANE_COUNT] = fma(a[i], b[i], lane[i % LANE_COUNT]);
  lanes_fold(lane);
  return lane[0];
}

real lane_sum_total(const struct lane_sum *s)
{
  real lane[LANE_COUNT];
  memcpy(lane, s->lane, sizeof lane);
  lanes_fold(lane);
  return s->segment > 0 ? s->done + lane[0] : lane[0];
}

void lane_sum_fma(struct lane_sum *s, gidx position, real a, real b)
{
  for (; s->segment < position / LANE_SEGMENT; s->segment++) {
    s->done = lane_sum_total(s);
    memset(s->lane, 0, sizeof s->lane);
  }
  real *lane = &s->lane[position % LANE_COUNT];
  *lane = fma(a, b, *lane);
}
