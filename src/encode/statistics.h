/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over rows that the metrics need, in the order of (N.0), while the blocks of rows pass.
 *
 * Floor: encode.
 *
 * Column sums: the ranks of a group see all rows of its sum blocks, and each owns a run of columns,
 * so a sum block's chain of a column is made by one rank, whatever the block size.  Rank 0 gets
 * the chains and the values of rows, in row order, and joins the sum blocks. */
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
  idx p, first, count; /* columns, and those that this rank sums */
  const real *shift;   /* [p] k_c, borrowed */
  gidx n, first_block; /* rows, and the sum block that they begin with */
  int threads;         /* that add rows: 1, unless set behind statistics_init() */
  real *chain;         /* [2][count] of the sum block in progress: x - k, (x - k)^2 */
  /* On rank 0: */
  real *joined;           /* [2 p + 2] a sum block's chains: columns, then errors and cosines */
  struct block_tree tree; /* of [2 p + 2] */
  gidx judged;            /* rows */
  gidx nonzero;
  struct norms *norms;
  struct code_counts codes; /* of this rank's rows */
};

/* Sum blocks whose last row is one of rows first .. first + n - 1 of all. */
gidx statistics_blocks(gidx first, gidx n, gidx all);

/* What groups send to rank 0 of a run of rows that they share: chains[rank][its sum blocks][2][its
 * columns]; group g has ended blocks[g] sum blocks, one group's before the next one's. */
struct chains {
  const real *values;
  int groups, ranks; /* ranks of a group */
  const gidx *blocks;
};

/* Of n rows that begin with a sum block.  The arrays, which start at zero, live in the arena.  The
 * ranks of the group have all columns together.  Not collective, as the two below. */
int statistics_init(struct statistics *s, struct arena *arena, const struct comm *group,
                    int is_root, idx p, const real *shift, gidx first_block, gidx n);
/* Add rows x[n][p], the first of which is number `first`, to this rank's columns.  They follow
 * those of the last call, or begin with a sum block.
 * ended[statistics_blocks()][2][count] <- the chains of the sum blocks that one of them ends. */
void statistics_rows(struct statistics *s, const float *x, gidx first, idx n, real *ended);
/* Add the quality of the next n rows, and the chains of the sum blocks that end with one of them,
 * on rank 0. */
void statistics_join(struct statistics *s, const struct row_quality *quality, idx n,
                     const struct chains *chains);

/* Both, for rows that are a sum block, where one rank has all columns.  work[2][p]: its own. */
void statistics_alone(struct statistics *s, const float *x, const struct row_quality *quality,
                      gidx first, idx n, real *work);

/* *sums <- the nodes of all sums, which live in the arena, on rank 0; s->codes <- those of all
 * ranks.  Collective. */
int statistics_finish(struct statistics *s, struct comm *c, struct part_sums *sums);

#endif
