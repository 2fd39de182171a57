/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the sum blocks that several ranks hold (N.0): aligned subtrees that may be absent.
 *
 * Floor: base.  Formulas: doc/numerics.md.
 *
 * A node is the sum over sum blocks index 2^level .. (index + 1) 2^level - 1.  Nodes are pushed in
 * ascending order of blocks, each beginning where the last one ended, and siblings are joined at
 * once; so the nodes that are left after consecutive blocks depend only on which blocks those are.
 * A node without rows is absent, and the sum of x and absent is x. */
#ifndef BASE_BLOCK_TREE_H
#define BASE_BLOCK_TREE_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_BLOCK_NODES = 104 }; /* that a run of blocks can leave: two for each level */

struct block_node {
  int level;
  int present; /* 0: its blocks have no rows */
  gidx index;
};

struct block_tree {
  idx width;           /* sums side by side */
  int count, capacity; /* nodes */
  struct block_node node[MAX_BLOCK_NODES];
  real *values; /* [capacity][width], borrowed from an arena */
};

/* The largest aligned node that begins at block `first` and ends by block `end`.  Called again and
 * again, it lists the nodes that blocks first .. end - 1 leave once siblings are joined. */
struct block_node block_node_next(gidx first, gidx end);
/* How many nodes `count` blocks from `first` on leave. */
int block_nodes_count(gidx first, gidx count);

/* How many nodes there are at most while `count` blocks from `first` on are pushed, one by one or
 * as the nodes that parts of them leave. */
int block_tree_depth(gidx first, gidx count);

/* An empty tree with capacity for so many nodes, or for `count` blocks from `first` on; its values
 * live in the arena. */
int block_tree_deep(struct block_tree *t, struct arena *arena, idx width, int depth);
int block_tree_init(struct block_tree *t, struct arena *arena, idx width, gidx first, gidx count);

/* Add the next node; its values[width] are not read where it is absent.  One for which there is no
 * capacity ends the program. */
void block_tree_push(struct block_tree *t, struct block_node node, const real *values);

/* total[width] <- the sum over all nodes, whose blocks must begin at 0; +0 where all are absent.
 * The nodes are joined by it: nothing can be pushed afterwards. */
void block_tree_total(struct block_tree *t, real *total);

#endif
