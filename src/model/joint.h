/* SPDX-License-Identifier: BSD-3-Clause
 * The joint system of all codes and all borders (N.17), its Schur complement S over the borders
 * (N.18), and what is summed over rows beside it.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Atom a owns directions direction[a] .. direction[a + 1] - 1 and the borders
 * d direction[a] .. d direction[a + 1] - 1: border (j, m) of an atom stands at j d + m.
 * A row's block has its kept vectors (N.5) in support order; an atom none of whose vectors is kept
 * is not in the row. */
#ifndef MODEL_JOINT_H
#define MODEL_JOINT_H

#include "base/log_pair.h"
#include "base/order.h"
#include "base/types.h"

struct joint {
  idx k, d, p;
  const float *atoms;   /* [k][d][p] */
  const idx *direction; /* [k + 1] not falling, from 0 */
  const real *e;        /* [direction[k]][p] */
  real rho;
};

static inline idx joint_border(const struct joint *j)
{
  return j->direction[j->k] * j->d;
}

/* Consecutive rows of a fit.  Supports as in model/supports.h: row i has entries start[i] ..
 * start[i + 1] - 1, counted from start[0]. */
struct joint_rows {
  gidx first; /* global number of row 0 */
  idx n;
  const float *x;     /* [n][p] */
  const gidx *start;  /* [n + 1] */
  const idx *atoms;   /* [entries] */
  const float *codes; /* [entries][d] */
};

/* A determinant over rows in the order of (N.12), (N.13).  Start from pair_sum_init(). */
struct pair_sum {
  struct log_pair lane[LANE_COUNT], done;
  gidx segment;
};
void pair_sum_init(struct pair_sum *s);
void pair_sum_pivot(struct pair_sum *s, gidx row, real pivot);
struct log_pair pair_sum_total(const struct pair_sum *s);

/* What is summed over rows.  Start from joint_sums_init(). */
struct joint_sums {
  struct pair_sum pairs; /* of the rows' blocks */
  struct row_sum errors; /* RSS by (N.0) */
  gidx codes;            /* kept vectors */
};
void joint_sums_init(struct joint_sums *s);

/* phi = RSS / (values - codes - borders); ERR_INPUT when that is not positive. */
int joint_phi(const struct joint_sums *sums, gidx n, idx p, idx border, real *phi);

/* Reference: add the rows to S [border][stride], column-major, lower triangle, and to the sums.
 * ERR_INPUT names the first row whose block is not positive definite.  Takes its own memory. */
int joint_reference(const struct joint *j, const struct joint_rows *rows, real *s, gidx stride,
                    struct joint_sums *sums);

#endif
