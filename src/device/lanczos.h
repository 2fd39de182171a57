/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: Lanczos tridiagonalisation of eight starts side by side, with full
 * reorthogonalisation, of a matrix that is a sum of small symmetric ones: the rows' parts of S.
 *
 * Floor: device.
 *
 * Vectors are [groups][n][8]; a chain never runs across vectors, so nothing depends on threads or
 * variants.  Arrays are the host's.  Not collective. */
#ifndef DEVICE_LANCZOS_H
#define DEVICE_LANCZOS_H

#include "base/memory.h"
#include "device/joint.h"

/* S = sum of parts: part i has the borders border[at[i]] .. and a dense [width][width] matrix. */
struct parts {
  gidx count, borders, values; /* used */
  gidx capacity_borders, capacity_values, capacity_count;
  gidx *at, *value_at; /* [count] first border, first value */
  idx *width, *border; /* [count], [borders] */
  real *value;         /* [values] */
  struct arena arena;
};
/* Space for about `bytes`; ERR_MEMORY. */
int parts_open(struct parts *p, gidx bytes);
void parts_close(struct parts *p);
/* *fit <- how many rows first .. end - 1 of the batch still fit. */
int parts_fit(const struct parts *p, const struct joint_work *w, idx first, idx end, idx *fit);
/* Append these rows, which fit. */
int parts_append(struct parts *p, struct joint_work *w, idx first, idx end);

/* y[groups][n][8] <- y + sum of parts times x. */
int parts_apply(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                real *y);

/* The steps of all starts.  Step j: q[j] is known, y = S q[j]; gives alpha[j], beta[j] and q[j+1].
 * beta 0: that start's space is exhausted. */
struct lanczos {
  idx n, groups, max;
  real **q;           /* [max + 1] of [groups][n][8] */
  real *alpha, *beta; /* [max][8 groups] */
  struct arena arena;
};
/* For at most `max` steps; and the bytes that this takes. */
int lanczos_open(struct lanczos *l, idx n, idx groups, idx max);
void lanczos_close(struct lanczos *l);
gidx lanczos_bytes(idx n, idx groups, idx max);
/* y is overwritten. */
int lanczos_step(struct device *dev, struct lanczos *l, idx j, real *y);

#endif
