/* SPDX-License-Identifier: BSD-3-Clause
 * Atoms from weighted sums over rows (N.52), block after block: each describes what the blocks
 * before it leave over.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_UPDATE_H
#define MODEL_FIND_UPDATE_H

#include <math.h>

#include "base/types.h"

/* Blocks of at most so many atoms each: a part of the result. */
enum { FIND_BLOCKS_MOST = 512 };

struct find_blocks {
  int count;
  idx end[FIND_BLOCKS_MOST]; /* ascending; block b has atoms end[b - 1] .. end[b] - 1 */
};

/* The power of 4 that is the unit of squares of codes, of rows whose mean square is given, with so
 * many codes each: 16 .. 64 of it are in a quotient of both (N.52). */
real find_unit(real square, real l0);

/* How much a row counts, 1 at most, in whose description `left` is the sum of squares of what is
 * left over; floor: what is little (N.52).  In the last updates the square of that counts. */
real find_weight(real left, real floor, int is_last);

/* Sums of an update over rows, of k atoms and, behind them, an intercept that has the code 1 in
 * every row. */
struct find_sums {
  idx k, p;
  const real *gram, *target; /* [k + 1][k + 1], [k + 1][p] */
  gidx rows;
  real ridge; /* how much an atom is held where it is */
};

/* Add rows y[n][p] with their codes[n][k] and weights[n] to gram and target. */
void find_sums_reference(const float *y, const float *codes, const real *weights, idx n, idx k,
                         idx p, real *gram, real *target);

/* Entries (i, j) and (i, c) of the sums about the weighted means, per mean weight. */
static inline real find_gram(const struct find_sums *s, const real *gram, idx i, idx j)
{
  const real *means = s->gram + (gidx)s->k * (s->k + 1), all = means[s->k];
  return (real)s->rows / all * fma(-means[i], means[j] / all, gram[j]);
}
static inline real find_target(const struct find_sums *s, idx i, real target, real mean)
{
  const real *means = s->gram + (gidx)s->k * (s->k + 1), all = means[s->k];
  return (real)s->rows / all * fma(-means[i] / all, mean, target);
}

/* moved[k][p] <- the atoms[k][p] moved block after block, not scaled; offset[p], what the intercept
 * gives, is added to.  Atoms of blocks are in the order[k].  ERR_MEMORY. */
int find_update_reference(const struct find_sums *sums, const struct find_blocks *blocks,
                          const idx *order, const float *atoms, real *moved, float *offset);

/* Is an atom that `firing` of the rows of an update had no feature?  Of at most one row nothing can
 * be said; what nearly all have, codes and offset can grow by against each other without end. */
static inline int find_is_useless(gidx firing, gidx rows)
{
  return firing <= 1 || 4 * firing > 3 * rows;
}

/* An atom[p] <- moved[p] scaled to norm 1, rounded once; as it was where that cannot be. */
void find_scale(const real *moved, idx p, float *atom);

/* order[k] <- the atoms by falling count, of equal ones the lower first. */
int find_order(const gidx *count, idx k, idx *order);

#endif
