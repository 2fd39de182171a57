/* SPDX-License-Identifier: BSD-3-Clause
 * Products of a few rows with a matrix.
 *
 * Floor: encode.  Knows no files.  Not collective.
 *
 * A product is the chain of (N.1): its bits do not depend on the other rows and atoms.  The matrix
 * is stored in panels of 16 atoms; in a panel the 16 values of a column are neighbours. */
#ifndef ENCODE_SCORES_H
#define ENCODE_SCORES_H

#include "base/memory.h"

enum { SCORE_LANES = 16, SCORE_ROWS = 8 }; /* atoms of a panel, rows at a time */

struct score_matrix {
  idx k, p, panels;
  float *values; /* [panels][p][SCORE_LANES], zeros after the last atom */
};

/* Memory for k atoms of p columns, zeroed; a dry arena only counts it. */
int scores_alloc(struct score_matrix *m, struct arena *arena, idx k, idx p);
/* Store rows[count][p] as the matrix rows of atoms first .. first + count - 1. */
void scores_put(struct score_matrix *m, const float *rows, idx first, idx count);
/* Scores per row: k, rounded up to whole panels. */
gidx scores_width(const struct score_matrix *m);

/* scores[n][scores_width()] <- the products of rows[n][p], n at most SCORE_ROWS. */
void scores_products(const struct score_matrix *m, const float *rows, idx n, float *scores);

#endif
