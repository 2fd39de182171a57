/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over row blocks that several workers hold (N.0): aligned subtrees that may be absent.
 *
 * Floor: base.  Formulas: doc/numerics.md.
 *
 * A node is the sum over row blocks index 2^level .. (index + 1) 2^level - 1.  A tree takes nodes
 * in ascending order of blocks, each beginning where the last one ended, and joins siblings at
 * once; so what is left after consecutive blocks depends on which blocks they are, and on nothing
 * else.  The sum of x and absent is x. */
#ifndef BASE_BLOCK_TREE_H
#define BASE_BLOCK_TREE_H

#include "base/memory.h"
#include "base/types.h"

enum { BLOCK_NODES_MOST = 104 }; /* of a run of blocks: two a level */

struct block_node {
  int level;
  int present;
  gidx index;
};

struct block_tree {
  idx width; /* sums side by side */
  int count, room;
  struct block_node node[BLOCK_NODES_MOST];
  real *values; /* [room][width] */
};

/* The largest node that begins at block first and ends by end: the next one that is left of blocks
 * first .. end - 1 once siblings are joined. */
struct block_node block_node_next(gidx first, gidx end);
/* How many those are. */
int block_nodes_count(gidx first, gidx count);

/* Room for the nodes of so many blocks from first on, taken from the arena. */
int block_tree_init(struct block_tree *t, struct arena *arena, idx width, gidx first, gidx count);

/* Add a node; values[width] are not read where it is absent. */
void block_tree_push(struct block_tree *t, struct block_node node, const real *values);

/* total[width] <- the sum, of blocks from 0 on; +0 where all are absent. */
void block_tree_total(struct block_tree *t, real *total);

#endif
