/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: Lanczos tridiagonalisation with full reorthogonalisation, for eight start
 * vectors at a time.  The matrix S is a sum of small symmetric matrices, one part for each row.
 *
 * Floor: device.
 *
 * Vectors are stored as [groups][n][8], eight vectors interleaved.  No sum mixes vectors, so
 * results do not depend on threads or variants.  Arrays are host memory.  Not collective. */
#ifndef DEVICE_LANCZOS_H
#define DEVICE_LANCZOS_H

#include "base/memory.h"
#include "device/joint.h"

/* S is the sum of the parts.  Part i is a dense matrix [width[i]][width[i]], whose rows and columns
 * are the borders border[at[i]] .. border[at[i] + width[i] - 1] of S. */
struct parts {
  gidx count, borders, values; /* used */
  gidx capacity_borders, capacity_values, capacity_count;
  gidx *at, *value_at; /* [count] index of a part's first border and first value */
  idx *width, *border; /* [count], [borders] */
  real *value;         /* [values] */
  struct arena arena;
};
/* Allocate about `bytes` in all; ERR_MEMORY. */
int parts_open(struct parts *p, gidx bytes);
void parts_close(struct parts *p);
/* *fit <- how many of the rows first .. end - 1 of the batch still fit. */
int parts_fit(const struct parts *p, const struct joint_work *w, idx first, idx end, idx *fit);
/* Append the parts of rows first .. end - 1 of the batch; they must fit. */
int parts_append(struct parts *p, struct joint_work *w, idx first, idx end);

/* y[groups][n][8] <- y + sum of parts times x. */
int parts_apply(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                real *y);

/* The Lanczos recurrences of all start vectors.  Step j takes q[j] and y = S q[j], and gives
 * alpha[j], beta[j] and q[j + 1].  beta = 0: the Krylov space of that start vector is exhausted. */
struct lanczos {
  idx n, groups, max;
  real **q;           /* [max + 1] pointers to [groups][n][8] */
  real *alpha, *beta; /* [max][groups][8] */
  struct arena arena;
};
/* Allocate the arrays for at most `max` steps.  lanczos_bytes(): the bytes that they take. */
int lanczos_open(struct lanczos *l, idx n, idx groups, idx max);
void lanczos_close(struct lanczos *l);
gidx lanczos_bytes(idx n, idx groups, idx max);
/* Step j; y is overwritten. */
int lanczos_step(struct device *dev, struct lanczos *l, idx j, real *y);

#endif
