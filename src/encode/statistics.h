/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over rows that the metrics need, in the order of (N.0), while the blocks of rows pass.
 *
 * Floor: encode.
 *
 * Column sums: every rank sees all rows and owns a run of columns, so each column is one
 * exact-order sum whatever the block size.  Row values: rank 0 gets them in row order and adds. */
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
  idx first, count;  /* columns that this rank sums */
  const real *shift; /* [p] k_c, borrowed */
  gidx first_block;
  real *chain;                 /* [2][count] of the sum block in progress: x - k, (x - k)^2 */
  struct block_tree columns;   /* of [2][count] */
  gidx rows;                   /* seen */
  real quality[2];             /* rank 0: errors and cosines of the sum block in progress */
  struct block_tree qualities; /* rank 0, of [2] */
  gidx judged;                 /* rank 0: rows */
  gidx nonzero;                /* rank 0 */
  struct code_counts codes;    /* of this rank's rows */
};

/* Of n rows that begin with a sum block.  Take the arrays, which start at zero, from the arena.
 * Not collective, as the two below. */
int statistics_init(struct statistics *s, struct arena *arena, const struct comm *c, idx p,
                    const real *shift, gidx first_block, gidx n);
/* Add the next n rows x[n][p] to this rank's columns. */
void statistics_rows(struct statistics *s, const float *x, idx n, idx p);
/* Add the quality of the next n rows, on rank 0. */
void statistics_quality(struct statistics *s, const struct row_quality *quality, idx n);

/* *sums <- the nodes of all sums, from the arena, on rank 0; s->codes <- those of all ranks.
 * Collective. */
int statistics_finish(struct statistics *s, struct comm *c, idx p, struct arena *arena,
                      struct part_sums *sums);

#endif
