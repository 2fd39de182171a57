/* SPDX-License-Identifier: BSD-3-Clause
 * The joint system of all codes and all borders (N.17): its Schur complement S over the borders
 * (N.18), and other sums over rows.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Atom a has the directions direction[a] .. direction[a + 1] - 1 and the borders d direction[a] ..
 * d direction[a + 1] - 1; direction j and frame vector m give border j d + m.  The diagonal block
 * of a row has its kept vectors (N.5) in support order.  An atom without a kept vector does not
 * count as being in the row. */
#ifndef MODEL_JOINT_H
#define MODEL_JOINT_H

#include "base/det_pair.h"
#include "base/sums.h"
#include "base/types.h"

struct joint {
  idx k, d, p;
  const float *atoms;   /* [k][d][p] */
  const idx *direction; /* [k + 1] nondecreasing, begins with 0 */
  const real *e;        /* [direction[k]][p] */
  real rho;
};

/* Number of borders, the order of S. */
static inline idx joint_border(const struct joint *j)
{
  return j->direction[j->k] * j->d;
}

/* Consecutive rows of a fit.  Supports as in model/supports.h: row i has entries start[i] ..
 * start[i + 1] - 1.  atoms and codes begin at entry start[0]. */
struct joint_rows {
  gidx first; /* global number of row 0 */
  idx n;
  const float *x;     /* [n][p] */
  const gidx *start;  /* [n + 1] */
  const idx *atoms;   /* [entries] */
  const float *codes; /* [entries][d] */
};

/* A determinant: the product of the pivots of all rows, in the order of (N.12) and (N.13). */
struct pair_sum {
  struct det_pair lane[LANE_COUNT], done;
  gidx segment;
};
void pair_sum_init(struct pair_sum *s);
void pair_sum_pivot(struct pair_sum *s, gidx row, real pivot);
struct det_pair pair_sum_total(const struct pair_sum *s);

/* The sums over rows besides S. */
struct joint_sums {
  struct pair_sum pairs; /* the determinant of the diagonal blocks */
  struct row_sum errors; /* RSS by (N.0) */
  gidx codes;            /* kept vectors of all rows */
};
void joint_sums_init(struct joint_sums *s);

/* *phi <- RSS / (n p - codes - border): the numbers of values, of codes and of borders.  ERR_INPUT
 * when the denominator is not positive. */
int joint_phi(const struct joint_sums *sums, gidx n, idx p, idx border, real *phi);

/* Reference: add rows to the lower triangle of S [border][stride], column-major, and to the sums.
 * It allocates its work space: ERR_MEMORY. */
int joint_reference(const struct joint *j, const struct joint_rows *rows, real *s, gidx stride,
                    struct joint_sums *sums);

#endif
