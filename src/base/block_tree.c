/* SPDX-License-Identifier: BSD-3-Clause
 * A stack of nodes whose blocks follow each other; two siblings on top are replaced by their
 * parent. */
#include "base/block_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int are_siblings(const struct block_node *left, const struct block_node *right)
{
  return left->level == right->level && left->index % 2 == 0 && right->index == left->index + 1;
}

static struct block_node parent_of(struct block_node a)
{
  return (struct block_node){a.level + 1, a.present, a.index / 2};
}

/* Replace the two nodes on top, which are siblings, by their sum. */
static void top_join(struct block_tree *t)
{
  struct block_node *left = &t->node[t->count - 2], *right = left + 1;
  real *a = t->values + (gidx)(t->count - 2) * t->width, *b = a + t->width;
  if (left->present && right->present)
    for (idx i = 0; i < t->width; i++) a[i] = a[i] + b[i];
  else if (right->present)
    memcpy(a, b, (size_t)t->width * sizeof *a);
  left->present = left->present || right->present;
  *left = parent_of(*left);
  t->count--;
}

static void siblings_join(struct block_tree *t)
{
  while (t->count > 1 && are_siblings(&t->node[t->count - 2], &t->node[t->count - 1])) top_join(t);
}

struct block_node block_node_next(gidx first, gidx end)
{
  int level = 0;
  while (first % ((gidx)2 << level) == 0 && first + ((gidx)2 << level) <= end) level++;
  return (struct block_node){.level = level, .index = first >> level};
}

int block_nodes_count(gidx first, gidx count)
{
  int nodes = 0;
  for (gidx at = first, end = first + count; at < end; nodes++)
    at += (gidx)1 << block_node_next(at, end).level;
  return nodes;
}

int block_tree_depth(gidx first, gidx count)
{
  int max = 1;
  for (gidx end = 1; end <= count; end++) { /* the stack is deepest just before siblings join */
    int nodes = block_nodes_count(first, end - 1) + 1;
    max = nodes > max ? nodes : max;
  }
  return max;
}

int block_tree_deep(struct block_tree *t, struct arena *arena, idx width, int depth)
{
  *t = (struct block_tree){.width = width, .capacity = depth};
  CHECK(depth <= MAX_BLOCK_NODES, ERR_INTERNAL, "%d nodes of sum blocks", depth);
  return arena_alloc(arena, &t->values, (gidx)depth * width, sizeof *t->values);
}

int block_tree_init(struct block_tree *t, struct arena *arena, idx width, gidx first, gidx count)
{
  return block_tree_deep(t, arena, width, block_tree_depth(first, count));
}

void block_tree_push(struct block_tree *t, struct block_node node, const real *values)
{
  if (t->count == t->capacity) abort(); /* do not write beyond the array */
  t->node[t->count] = node;
  if (node.present)
    memcpy(t->values + (gidx)t->count * t->width, values, (size_t)t->width * sizeof *values);
  t->count++;
  siblings_join(t);
}

void block_tree_total(struct block_tree *t, real *total)
{
  siblings_join(t);
  while (t->count > 1) {
    t->node[t->count - 1] = parent_of(t->node[t->count - 1]);
    siblings_join(t);
  }
  for (idx i = 0; i < t->width; i++) total[i] = t->count && t->node[0].present ? t->values[i] : 0;
}
