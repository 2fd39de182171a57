/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over rows that the metrics need, in the order of (N.0), while the blocks of rows pass.
 *
 * Floor: encode.
 *
 * A chain is a sum whose terms are added one after another; each sum block of ROW_BLOCK rows has
 * one chain per column (base/sums.h).  The ranks of a group see all rows of the group's sum blocks,
 * and each sums a run of columns.  So one rank makes the whole chain of a column, whatever the
 * block size.  Rank 0 gets the chains and the rows' quality in row order, and joins the sum
 * blocks. */
#ifndef ENCODE_STATISTICS_H
#define ENCODE_STATISTICS_H

#include "base/memory.h"
#include "base/block_tree.h"
#include "base/sums.h"
#include "comm/comm.h"
#include "model/codes.h"
#include "model/part.h"
#include "model/results.h"

struct statistics {
  idx p, first, count; /* columns; this rank sums columns first .. first + count - 1 */
  const real *shift;   /* [p] the column's shift, k_c in doc/numerics.md; borrowed */
  gidx n, first_block; /* rows, and the number of their first sum block */
  int threads;         /* number of threads that add rows: 1, unless set after statistics_init() */
  real *chain;         /* [2][count] of the sum block in progress: of x - k_c and (x - k_c)^2 */
  /* On rank 0: */
  real *joined;           /* [2 p + 2] chains of a sum block: columns, then errors and cosines */
  struct block_tree tree; /* each node has 2 p + 2 sums */
  gidx judged;            /* rows that were joined */
  gidx nonzero;
  struct norms *norms;
  struct code_counts codes; /* of this rank's rows */
};

/* How many sum blocks end with one of rows first .. first + n - 1, of `all` rows. */
gidx statistics_blocks(gidx first, gidx n, gidx all);

/* The chains of ended sum blocks that rank 0 gets from all groups: values is [group][rank of the
 * group][ended block of the group][2][columns of the rank], all one after another.  Group g has
 * blocks[g] ended sum blocks. */
struct chains {
  const real *values;
  int groups, ranks; /* ranks of a group */
  const gidx *blocks;
};

/* For n rows, the first of which begins a sum block.  The arrays start at zero and live in the
 * arena.  The ranks of the group sum all columns together.  Not collective; nor are the next two
 * functions. */
int statistics_init(struct statistics *s, struct arena *arena, const struct comm *group,
                    int is_root, idx p, const real *shift, gidx first_block, gidx n);
/* Add rows x[n][p], numbers first .. first + n - 1, to this rank's columns.  They follow the rows
 * of the call before, or begin a sum block.  ended[statistics_blocks()][2][count] <- the chains of
 * the sum blocks that end with one of them. */
void statistics_rows(struct statistics *s, const float *x, gidx first, idx n, real *ended);
/* On rank 0: add the quality of the next n rows, and the chains of the sum blocks that end with one
 * of them. */
void statistics_join(struct statistics *s, const struct row_quality *quality, idx n,
                     const struct chains *chains);

/* statistics_rows() and statistics_join() for the rows of one sum block, when one rank sums all
 * columns.  work[2][p] is used for the chains. */
void statistics_alone(struct statistics *s, const float *x, const struct row_quality *quality,
                      gidx first, idx n, real *work);

/* *sums <- the tree nodes of all sums, on rank 0; they live in the arena.  s->codes <- the counts
 * of all ranks.  Collective. */
int statistics_finish(struct statistics *s, struct comm *c, struct part_sums *sums);

#endif
