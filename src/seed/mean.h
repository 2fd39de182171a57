/* SPDX-License-Identifier: BSD-3-Clause
 * Column means of rows, the same bits for any number of ranks.
 *
 * Floor: seed.
 *
 *     mean_c = fl(k_c + fl(sum_i (x_ic - k_c) / N))        (doc/numerics.md sections 1 and 7)
 *
 * k is the mean of the first min(N, SHIFT_ROWS) rows; the sum goes by (N.0). */
#ifndef SEED_MEAN_H
#define SEED_MEAN_H

#include "base/stop.h"
#include "base/types.h"
#include "comm/comm.h"
#include "model/rows.h"

/* mean[rows->p], on every rank; 0 when there are no rows.  Reads every row once, each rank whole
 * sum blocks in turn, and asks between them whether to stop (NULL: nothing asks), where more than
 * some seconds are left: ERR_STOPPED, since half a mean is of no use to a later run.  Collective;
 * rows must be the same rows on every rank.  ERR_INPUT names the lowest row that is not finite. */
int mean_compute(struct comm *c, const struct row_source *rows, const struct stops *stops,
                 real *mean);
/* The same, with a warning where a few of the rows, less k, are massive (model/norms.h); *norm,
 * unless NULL <- the norm of the median one. */
int mean_compute_warned(struct comm *c, const struct row_source *rows, const struct stops *stops,
                        real *mean, real *norm);

/* Read every row once and check that it is finite, as above, where no mean is wanted: a seed draws
 * a few rows, but none of a file that no later command takes.  Collective. */
int rows_finite(struct comm *c, const struct row_source *rows);

#endif
