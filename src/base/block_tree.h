/* SPDX-License-Identifier: BSD-3-Clause
 * Sums (N.0) over sum blocks (base/sums.h) that are divided among several ranks.  Each sum is a
 * node of a tree; a node may be absent.
 *
 * Floor: base.  Formulas: doc/numerics.md.
 *
 * A node is the sum over sum blocks index 2^level .. (index + 1) 2^level - 1.  Nodes are pushed in
 * ascending order of blocks, each beginning where the last one ended; siblings are joined at once.
 * So the nodes that remain after a run of consecutive blocks depend only on the first and the last
 * block.  A node without rows is absent, and the sum of x and an absent node is x. */
#ifndef BASE_BLOCK_TREE_H
#define BASE_BLOCK_TREE_H

#include "base/memory.h"
#include "base/types.h"

/* largest number of nodes that remain after a run of blocks: two per level */
enum { MAX_BLOCK_NODES = 104 };

struct block_node {
  int level;
  int present; /* 0: its blocks have no rows */
  gidx index;
};

struct block_tree {
  idx width;           /* number of sums in a node */
  int count, capacity; /* nodes */
  struct block_node node[MAX_BLOCK_NODES];
  real *values; /* [capacity][width], borrowed from an arena */
};

/* The largest node that begins with block `first` and ends before block `end`.  Calls that each
 * begin where the last node ended list the nodes that remain when blocks first .. end - 1 were
 * pushed and siblings joined. */
struct block_node block_node_next(gidx first, gidx end);
/* The number of nodes that remain after blocks first .. first + count - 1. */
int block_nodes_count(gidx first, gidx count);

/* The largest number of nodes at any time while blocks first .. first + count - 1 are pushed, one
 * by one or as nodes of several blocks. */
int block_tree_depth(gidx first, gidx count);

/* An empty tree: block_tree_deep() makes room for `depth` nodes, block_tree_init() for blocks first
 * .. first + count - 1.  Its values live in the arena. */
int block_tree_deep(struct block_tree *t, struct arena *arena, idx width, int depth);
int block_tree_init(struct block_tree *t, struct arena *arena, idx width, gidx first, gidx count);

/* Add the next node; its values[width] are not read if it is absent.  If there is no room for it,
 * the program ends. */
void block_tree_push(struct block_tree *t, struct block_node node, const real *values);

/* total[width] <- the sum over all nodes, whose blocks must begin at 0; +0 if all are absent.  This
 * joins the nodes: nothing can be pushed afterwards. */
void block_tree_total(struct block_tree *t, real *total);

#endif
