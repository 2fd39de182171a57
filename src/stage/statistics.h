/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over rows that the metrics need, in the order of (N.0), while blocks of rows stream past.
 *
 * Floor: stage.
 *
 * Column sums: every rank sees all rows and owns a run of columns, so each column is one
 * exact-order sum whatever the block size.  Row values: rank 0 gets them in row order and adds. */
#ifndef STAGE_STATISTICS_H
#define STAGE_STATISTICS_H

#include "base/memory.h"
#include "base/order.h"
#include "comm/comm.h"
#include "model/codes.h"
#include "model/results.h"

struct statistics {
  idx first, count;               /* own columns */
  const real *shift;              /* [p] k_c, borrowed */
  real *chain;                    /* [2][count] of the row block in progress: x - k, (x - k)^2 */
  real *tree;                     /* [TREE_LEVELS][2 count] */
  gidx rows, blocks;              /* rows seen, row blocks pushed */
  struct row_sum errors, cosines; /* rank 0 */
  gidx nonzero;                   /* rank 0 */
};

/* Not collective. */
int statistics_init(struct statistics *s, struct arena *arena, const struct comm *c, idx p,
                    const real *shift);
void statistics_rows(struct statistics *s, const float *x, idx n, idx p);
void statistics_quality(struct statistics *s, const struct row_quality *quality, idx n);

/* Fill the metrics that depend on fits (rank 0), from the total sum of squares.  Collective. */
int statistics_finish(struct statistics *s, struct comm *c, idx p, struct metrics *metrics);

#endif
