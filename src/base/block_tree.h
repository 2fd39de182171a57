/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over sum blocks (base/sums.h) that several ranks hold (N.0): nodes of a tree, which may be
 * absent.
 *
 * Floor: base.  Formulas: doc/numerics.md.
 *
 * A node is the sum over sum blocks index 2^level .. (index + 1) 2^level - 1.  Nodes are pushed in
 * ascending order of blocks, each beginning where the last one ended; siblings are joined at once.
 * So the nodes that are left after consecutive blocks depend only on which blocks these are.  A
 * node without rows is absent, and the sum of x and absent is x. */
#ifndef BASE_BLOCK_TREE_H
#define BASE_BLOCK_TREE_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_BLOCK_NODES = 104 }; /* most nodes that a run of blocks leaves: two per level */

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

/* The largest aligned node that begins at block `first` and ends at or before block `end`.
 * Repeated calls list the nodes that blocks first .. end - 1 leave once siblings are joined. */
struct block_node block_node_next(gidx first, gidx end);
/* How many nodes the `count` blocks from `first` on leave. */
int block_nodes_count(gidx first, gidx count);

/* The most nodes at any time while `count` blocks from `first` on are pushed, one by one or as the
 * nodes that parts of them leave. */
int block_tree_depth(gidx first, gidx count);

/* An empty tree with room for so many nodes, or for `count` blocks from `first` on.  Its values
 * live in the arena. */
int block_tree_deep(struct block_tree *t, struct arena *arena, idx width, int depth);
int block_tree_init(struct block_tree *t, struct arena *arena, idx width, gidx first, gidx count);

/* Add the next node; its values[width] are not read if it is absent.  If there is no room for it,
 * the program ends. */
void block_tree_push(struct block_tree *t, struct block_node node, const real *values);

/* total[width] <- the sum over all nodes, whose blocks must begin at 0; +0 if all are absent.  This
 * joins the nodes: nothing can be pushed afterwards. */
void block_tree_total(struct block_tree *t, real *total);

#endif
