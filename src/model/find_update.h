/* SPDX-License-Identifier: BSD-3-Clause
 * Atoms from weighted sums over rows (N.52), block after block: each block describes the residuals
 * that the blocks before it leave of the rows.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_FIND_UPDATE_H
#define MODEL_FIND_UPDATE_H

#include <math.h>

#include "base/types.h"

/* The largest number of blocks. */
enum { FIND_BLOCKS_MOST = 512 };

struct find_blocks {
  int count;
  idx end[FIND_BLOCKS_MOST]; /* ascending; block b has atoms end[b - 1] .. end[b] - 1 */
};

/* A power of 4, the unit of squares of codes, for rows of this mean square with l0 codes each:
 * square / l0 is 16 .. 64 units (N.52). */
real find_unit(real square, real l0);

/* The weight of a row, at most 1.  It is floor / (left + floor), where left is the squared norm of
 * the row's residual; 1 if floor is 0 (N.52).  is_last: the weight is squared. */
real find_weight(real left, real floor, int is_last);

/* Sums over the rows of an update, for k atoms and an intercept.  The intercept comes last, and has
 * code 1 in every row. */
struct find_sums {
  idx k, p;
  const real *gram, *target; /* [k + 1][k + 1], [k + 1][p] */
  gidx rows;
  real ridge; /* penalty on the squared distance that an atom moves */
};

/* Add rows y[n][p] with codes[n][k] and weights[n] to gram and target. */
void find_sums_reference(const float *y, const float *codes, const real *weights, idx n, idx k,
                         idx p, real *gram, real *target);

/* Entry (i, j) of the Gram matrix, and entry (i, c) of the target, about the weighted means and
 * divided by the mean weight. */
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

/* moved[k][p] <- the atoms after the move, block after block, not scaled; row i is atom order[i] of
 * atoms[k][p].  The intercept that the moved atoms leave is added to offset[p].  A block has
 * consecutive atoms of order[k]; if its matrix has no Cholesky factor, its atoms stay as they are.
 * ERR_MEMORY. */
int find_update_reference(const struct find_sums *sums, const struct find_blocks *blocks,
                          const idx *order, const float *atoms, real *moved, float *offset);

/* Is an atom that `firing` of the rows of an update use useless?  One row does not make a feature;
 * and if nearly all rows use an atom, its codes and the offset can grow without end, with opposite
 * signs. */
static inline int find_is_useless(gidx firing, gidx rows)
{
  return firing <= 1 || 4 * firing > 3 * rows;
}

/* atom[p] <- moved[p] scaled to norm 1 and rounded once; unchanged if the norm of moved is 0 or not
 * finite. */
void find_scale(const real *moved, idx p, float *atom);

/* order[k] <- the atoms by falling count; of equal counts the lower atom comes first.
 * ERR_MEMORY. */
int find_order(const gidx *count, idx k, idx *order);

#endif
