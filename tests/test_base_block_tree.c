/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: sum blocks may be cut into parts anywhere, each part joined by itself, and the parts
 * joined.  The sum has the bits of the recursion of (N.0), with absent blocks and negative zeros,
 * too. */
#include "base/block_tree.h"

#include <string.h>

#include "base/rng.h"
#include "tap.h"

enum { BLOCKS = 37 };

static int present[BLOCKS];
static real value[BLOCKS];

/* *out <- T(level, index) by its definition.  Returns 0 if all its blocks are absent. */
static int recursion(int level, int index, real *out)
{
  real left, right;
  if (level == 0) {
    *out = index < BLOCKS ? value[index] : 0;
    return index < BLOCKS && present[index];
  }
  int has_left = recursion(level - 1, 2 * index, &left);
  int has_right = recursion(level - 1, 2 * index + 1, &right);
  *out = has_left && has_right ? left + right : has_left ? left : right;
  return has_left || has_right;
}

/* The sum of blocks that are cut into parts at `cuts`: each part is joined, then all parts. */
static real cut_total(const int *cuts, int parts)
{
  struct arena arena = {0};
  struct block_tree whole;
  real total = -1;
  block_tree_init(&whole, &arena, 1, 0, BLOCKS);
  for (int p = 0; p < parts; p++) {
    struct block_tree part;
    gidx first = cuts[p], end = cuts[p + 1];
    block_tree_init(&part, &arena, 1, first, end - first);
    for (gidx b = first; b < end; b++)
      block_tree_push(&part, (struct block_node){0, present[b], b}, value + b);
    if (part.count != block_nodes_count(first, end - first)) return -1;
    for (int i = 0; i < part.count; i++) {
      struct block_node node = block_node_next(first, end);
      if (node.level != part.node[i].level || node.index != part.node[i].index) return -1;
      first += (gidx)1 << node.level;
      block_tree_push(&whole, part.node[i], part.values + i);
    }
  }
  block_tree_total(&whole, &total);
  arena_free(&arena);
  return total;
}

int main(void)
{
  int good = 0, tries = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    int cuts[5] = {0}, parts = 4;
    uint64_t odds = random_below(seed, 3, 0, 5);
    for (int b = 0; b < BLOCKS; b++) {
      present[b] = random_below(seed, 1, (uint64_t)b, 4) < odds;
      value[b] = seed % 7 == 0 ? -0.0 : random_normal(seed, 2, (uint64_t)b);
    }
    for (int p = 1; p < parts; p++)
      cuts[p] = cuts[p - 1] +
                (int)random_below(seed, 4, (uint64_t)p, (uint64_t)(BLOCKS - cuts[p - 1] + 1));
    cuts[parts] = BLOCKS;
    real want, have = cut_total(cuts, parts);
    if (!recursion(6, 0, &want)) want = 0;
    good += memcmp(&want, &have, sizeof want) == 0;
    tries++;
  }
  ok(good == tries, "%d of %d sums have the bits of the recursion", good, tries);
  return done_testing();
}
