/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of a source without some of them, as a source.
 *
 * Floor: model.  Not collective. */
#ifndef MODEL_KEPT_ROWS_H
#define MODEL_KEPT_ROWS_H

#include "model/rows.h"

struct kept_rows {
  const struct row_source *rows; /* borrowed */
  gidx count;                    /* rows that are left out */
  const gidx *out;               /* [count] ascending, borrowed */
};

/* *kept <- the others, in their order; valid as long as *k.  Reading checks that values are finite,
 * and names a row by its number among all. */
void kept_rows_source(struct kept_rows *k, struct row_source *kept);

#endif
