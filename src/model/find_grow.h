/* SPDX-License-Identifier: BSD-3-Clause
 * New atoms: directions in which the residuals of rows are skewed, that is, large in a few rows
 * (N.54).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_GROW_H
#define MODEL_FIND_GROW_H

#include "base/types.h"

/* largest number of rows that are used; number of steps that improve a direction */
enum { GROW_ROWS = 8192, GROW_STEPS = 4 };
/* The largest cosine that a new atom should have with another atom. */
#define GROW_COSINE 0.6F

/* The number of directions that are tried to find `need` new atoms from n rows. */
idx grow_candidates(idx need, idx n);
/* The threshold of a direction is its r-th largest product with the n rows.  Returns r, for a
 * dictionary of k atoms. */
idx grow_rank(idx n, idx k);

/* values[n] are products of rows and a direction.  The threshold is the rank-th largest of them, or
 * 0 if fewer are positive.  Each value becomes max(value - threshold, 0).  Returns the
 * threshold. */
float grow_cut(float *values, idx n, idx rank);

struct grow_rows {
  const float *rows; /* [n][p] */
  idx n, p, rank;
};
/* Improve directions[m][p], which have norm 1, by the rows; threshold[m] <- the thresholds of the
 * improved directions.  ERR_MEMORY. */
int grow_directions_reference(const struct grow_rows *r, float *directions, idx m,
                              float *threshold);

/* Subtract the rows' mean from rows[n][p]: chains in f64, rounded once. */
void rows_about_mean(float *rows, idx n, idx p);

/* order[m] <- the directions by falling threshold; of equal thresholds the lower direction comes
 * first.  ERR_MEMORY. */
int grow_order(const float *threshold, idx m, idx *order);

/* chosen[need] <- the first directions[m][p] whose cosine with each of the atoms[k][p], and with
 * each direction chosen before, is at most GROW_COSINE.  If there are fewer than `need`, the first
 * of the other directions follow.  m >= need. */
void grow_choose_reference(const float *directions, idx m, idx p, const float *atoms, idx k,
                           idx need, idx *chosen);

#endif
