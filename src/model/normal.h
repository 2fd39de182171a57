/* SPDX-License-Identifier: BSD-3-Clause
 * The normal equations of all atoms at once, given the codes of all rows (N.20): with codes C[n][k]
 * and rows X[n][p], atoms D[k][p] minimise |X - C D|^2 where C'C D = C'X.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The update is the block coordinate descent of Mairal, Bach, Ponce and Sapiro (2010), algorithm 2,
 * started at the atoms as they are.  These plain loops are the references of device/normal.h. */
#ifndef MODEL_NORMAL_H
#define MODEL_NORMAL_H

#include "base/types.h"

/* Number of atoms of a block of the descent.  The bits of the result depend on it. */
enum { NORMAL_BLOCK = 64 };

/* Rows with their codes; a code of 0 adds nothing. */
struct normal_rows {
  idx n, s, p;
  const idx *atoms;   /* [n][s] */
  const float *codes; /* [n][s] */
  const float *x;     /* [n][p] */
};

/* Add C'C to gram[k][k], and C'X to target[k][p]: each entry continues as one chain of fma over the
 * rows, ascending. */
void normal_add(const struct normal_rows *rows, idx k, real *gram, real *target);

/* Multiply every entry of values[count] by beta, so that earlier rows have less weight. */
void normal_decay(real beta, gidx count, real *values);

/* One pass over the atoms[k][p], ascending; an atom without codes stays as it is:
 *     d_a <- (target_a - sum_b gram_ab d_b) / gram_aa,
 * where the sum is one chain of fma from target_a: first over the atoms outside of a's block of
 * NORMAL_BLOCK, ascending, then over the others of the block, ascending, with their present
 * values. */
void normal_descend(const real *gram, const real *target, idx k, idx p, real *atoms);

/* Add to energy[n] the squares of the rows' residuals in columns begin .. begin + columns - 1;
 * atoms[k][columns] has these columns.  Squares are a chain of fma over columns, ascending; each
 * entry of a residual is a chain of fma(-d_a, code, .), along the support. */
void normal_energies(const struct normal_rows *rows, const real *atoms, idx begin, idx columns,
                     real *energy);

#endif
