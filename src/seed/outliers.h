/* SPDX-License-Identifier: BSD-3-Clause
 * Leaving out rows of massive norm, as first tokens have, which would decide all sums over rows.
 *
 * Floor: seed.
 *
 * A row is left out where its norm, less the column medians of the first min(N, SHIFT_ROWS) rows,
 * is at least `multiple` times that of the median row (doc/numerics.md, section 7).  Of rows to
 * judge by too, by the medians of those to fit. */
#ifndef SEED_OUTLIERS_H
#define SEED_OUTLIERS_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/kept_rows.h"

struct outliers {
  gidx count[2]; /* rows that are left out, of those to fit and of those to judge by */
  real share[2]; /* of the squares of each */
  struct kept_rows kept[2];
  struct row_source source[2];
  struct arena arena;
};

/* *rows, and *held unless it is NULL, <- sources without such rows, valid as long as *o; with
 * `multiple` 0 nothing happens.  Reads all rows once.  Collective, the same on every rank.
 * ERR_USAGE: a multiple of at most 1; ERR_INPUT: a value is not finite, or all rows to judge by are
 * such. */
int outliers_leave_out(struct outliers *o, struct comm *c, real multiple,
                       const struct row_source **rows, const struct row_source **held);
/* Say how many there were; nothing without a multiple.  On each rank, of which rank 0 is heard. */
void outliers_log(const struct outliers *o, real multiple);
void outliers_free(struct outliers *o);

#endif
