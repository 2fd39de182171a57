/* SPDX-License-Identifier: BSD-3-Clause
 * The tree is kept like a binary counter: pushing a block carries through the finished subtrees. */
#include "base/order.h"

#include <math.h>
#include <string.h>

static void tree_push(real *tree, gidx blocks, real value)
{
  int level = 0;
  for (; blocks >> level & 1; level++) value = tree[level] + value;
  tree[level] = value;
}

/* Subtrees that lack their right half are carried upwards unchanged, so what is left is added from
 * the smallest (rightmost) upwards. */
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

idx golden_stride(idx count)
{
  idx stride = (idx)(0.6180339887 * count) + 1;
  for (;; stride++) {
    idx a = count, b = stride;
    while (b) {
      idx rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return stride;
  }
}

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t counter)
{
  const uint64_t golden = 0x9e3779b97f4a7c15u;
  uint64_t key = mix64(mix64(seed + golden) + golden * (stream + 1));
  return mix64(key + golden * (counter + 1));
}

uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t bound)
{
  uint64_t bits = random_bits(seed, stream, counter);
  uint64_t low = (bits & 0xffffffffu) * bound >> 32;
  return ((bits >> 32) * bound + low) >> 32;
}

real random_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
  int64_t sum = 0;
  for (uint64_t word = 0; word < 3; word++) {
    uint64_t bits = random_bits(seed, stream, 3 * counter + word);
    for (int part = 0; part < 4; part++) sum += (int64_t)(bits >> 16 * part & 0xffff);
  }
  return (real)(2 * sum + 12 - 12 * 65536) * 0x1p-17;
}
