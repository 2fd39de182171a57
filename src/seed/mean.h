/* SPDX-License-Identifier: BSD-3-Clause
 * Column means of rows, with the same bits for any number of ranks.
 *
 * Floor: seed.
 *
 *      mean_c = fl(k_c + fl(sum_i (x_ic - k_c) / N))        (doc/numerics.md sections 1 and 7)
 *
 * k is the mean of the first min(N, SHIFT_ROWS) rows; the terms are added in the order of (N.0). */
#ifndef SEED_MEAN_H
#define SEED_MEAN_H

#include "base/stop.h"
#include "base/types.h"
#include "comm/comm.h"
#include "model/rows.h"

/* mean[rows->p] <- the means, on every rank; 0 if there are no rows.  Every row is read once, and
 * rank 0 reads the first SHIFT_ROWS rows once more; each rank reads whole sum blocks (base/sums.h),
 * round robin.  Between blocks, stops tells whether to stop (NULL: never), unless the pass will end
 * in a few seconds.  A stop gives ERR_STOPPED, since half a mean is of no use to a later run.
 * Collective; rows must be the same on every rank.  ERR_INPUT names the lowest row that is not
 * finite. */
int mean_compute(struct comm *c, const struct row_source *rows, const struct stops *stops,
                 real *mean);
/* As mean_compute(); also warns if the norms of a few rows, after k is subtracted, are massive
 * (model/norms.h).  *norm, unless NULL <- the norm of the median row. */
int mean_compute_warned(struct comm *c, const struct row_source *rows, const struct stops *stops,
                        real *mean, real *norm);

/* Compute no mean: only read every row and check that it is finite.  Used when no mean is wanted: a
 * seed draws a few rows, but the whole file must be one that later commands accept.  Collective. */
int rows_finite(struct comm *c, const struct row_source *rows);

#endif
