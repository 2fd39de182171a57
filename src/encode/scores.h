/* SPDX-License-Identifier: BSD-3-Clause
 * Products of a few rows with a matrix.
 *
 * Floor: encode.  Knows no files.  Not collective.
 *
 * A product is the chain of (N.1), whatever stands beside it: 16 atoms go abreast, and their part
 * of the matrix is a panel, in which the values of a column are neighbours. */
#ifndef ENCODE_SCORES_H
#define ENCODE_SCORES_H

#include "base/memory.h"

enum { SCORE_LANES = 16, SCORE_ROWS = 8 }; /* atoms of a panel, rows at a time */

struct score_matrix {
  idx k, p, panels;
  float *values; /* [panels][p][SCORE_LANES], zero behind the last atom */
};

/* Memory for k atoms of p columns, zeroed; a dry arena only counts it. */
int scores_alloc(struct score_matrix *m, struct arena *arena, idx k, idx p);
/* Put rows[count][p] of the matrix, those of the atoms from `first` on, in its place. */
void scores_put(struct score_matrix *m, const float *rows, idx first, idx count);
/* Scores that a row takes: k, filled up to whole panels. */
gidx scores_width(const struct score_matrix *m);

/* scores[n][scores_width()] <- the products of rows[n][p], n at most SCORE_ROWS. */
void scores_products(const struct score_matrix *m, const float *rows, idx n, float *scores);

#endif
