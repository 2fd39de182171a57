/* SPDX-License-Identifier: BSD-3-Clause
 * New atoms: directions in which what is left of rows is skew, that is, large in a few rows (N.54).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_GROW_H
#define MODEL_FIND_GROW_H

#include "base/types.h"

/* Rows that are looked at, at most; how often directions are improved. */
enum { GROW_ROWS = 8192, GROW_STEPS = 4 };
/* The cosine with another atom that a new one has at most. */
#define GROW_COSINE 0.6F

/* Directions that are tried for so many new atoms, of n rows. */
idx grow_candidates(idx need, idx n);
/* Which of n values, from the largest, 1 .. n, is the threshold of a direction, where there are to
 * be k atoms. */
idx grow_rank(idx n, idx k);

/* values[n], products of rows and a direction, become what is above the rank-th of them, else 0;
 * returns that threshold. */
float grow_cut(float *values, idx n, idx rank);

struct grow_rows {
  const float *rows; /* [n][p] */
  idx n, p, rank;
};
/* directions[m][p], of norm 1, improve by the rows; threshold[m] <- that of each in the end.
 * ERR_MEMORY. */
int grow_directions_reference(const struct grow_rows *r, float *directions, idx m,
                              float *threshold);

/* rows[n][p] <- they less their mean: chains in f64, rounded once. */
void rows_about_mean(float *rows, idx n, idx p);

/* order[m] <- the directions by falling threshold, of equal ones the lower first. */
int grow_order(const float *threshold, idx m, idx *order);

/* chosen[need] <- the first `need` of the directions[m][p], which are in their order, whose cosine
 * with each of the atoms[k][p], and with those chosen before, is GROW_COSINE at most; where these
 * are too few, the first of the others follow; m >= need. */
void grow_choose_reference(const float *directions, idx m, idx p, const float *atoms, idx k,
                           idx need, idx *chosen);

#endif
