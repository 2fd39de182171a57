/* SPDX-License-Identifier: BSD-3-Clause
 * Leaving out rows of massive norm, which would dominate all sums over rows.  The rows of first
 * tokens often have such norms.
 *
 * Floor: seed.
 *
 * First the column medians of the first min(N, SHIFT_ROWS) rows are subtracted.  A row is left out
 * if its norm is then at least `multiple` times the norm of the median row (doc/numerics.md,
 * section 7).  Held-out rows are left out in the same way, with the column medians and the median
 * norm of the rows to fit. */
#ifndef SEED_OUTLIERS_H
#define SEED_OUTLIERS_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/kept_rows.h"

struct outliers {
  gidx count[2]; /* number of rows that are left out: [0] of the rows to fit, [1] of the held-out
                  * rows */
  real share[2]; /* the part of the sum of squares that the rows left out have */
  struct kept_rows kept[2];
  struct row_source source[2];
  struct arena arena;
};

/* *rows, and *held unless it is NULL, <- sources without such rows, valid as long as *o is.  With
 * `multiple` 0 nothing is done.  Reads all rows once, and the first SHIFT_ROWS rows to fit once
 * more.  Collective; equal results on all ranks.  ERR_USAGE: `multiple` is above 0 and at most 1;
 * ERR_INPUT: a value is not finite, or all held-out rows would be left out. */
int outliers_leave_out(struct outliers *o, struct comm *c, real multiple,
                       const struct row_source **rows, const struct row_source **held);
/* Log how many rows were left out; log nothing if multiple is 0.  Every rank calls it, rank 0
 * prints. */
void outliers_log(const struct outliers *o, real multiple);
void outliers_free(struct outliers *o);

#endif
