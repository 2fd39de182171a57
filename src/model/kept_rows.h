/* SPDX-License-Identifier: BSD-3-Clause
 * A source of rows that leaves out some rows of another source.
 *
 * Floor: model.  Not collective. */
#ifndef MODEL_KEPT_ROWS_H
#define MODEL_KEPT_ROWS_H

#include "model/rows.h"

struct kept_rows {
  const struct row_source *rows; /* borrowed */
  gidx count;                    /* number of rows that are left out */
  const gidx *out;               /* [count] ascending, borrowed */
};

/* *kept <- the other rows, in order; valid as long as *k is.  Reading checks that values are
 * finite, and names a row by its number among all rows. */
void kept_rows_source(struct kept_rows *k, struct row_source *kept);

#endif
