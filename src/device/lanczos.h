/* SPDX-License-Identifier: BSD-3-Clause
 * Lanczos tridiagonalisation of eight starts side by side, with full reorthogonalisation, for a
 * matrix that is a sum of small symmetric ones: the rows' parts of S.
 *
 * Floor: device.  Not collective.  Vectors are [groups][n][8]; a chain never runs across vectors,
 * so nothing depends on threads or variants. */
#ifndef DEVICE_LANCZOS_H
#define DEVICE_LANCZOS_H

#include "device/joint.h"

/* S = sum of parts: part i has the borders border[at[i]] .. and a dense [width][width] matrix. */
struct parts {
  gidx count, borders, values; /* used */
  gidx room_borders, room_values, room_count;
  gidx *at, *value_at; /* [count] first border, first value */
  idx *width, *border; /* [count], [borders] */
  real *value;         /* [values] */
  struct arena arena;
};
/* Room for about `bytes`; ERR_MEMORY. */
int parts_open(struct parts *p, gidx bytes);
void parts_close(struct parts *p);
/* How many rows of the batch, from `first` on, still fit; append them. */
idx parts_fit(const struct parts *p, const struct joint_work *w, idx first, idx end);
int parts_append(struct parts *p, struct joint_work *w, idx first, idx end);

/* y <- y + sum of parts times x. */
void parts_apply(const struct parts *p, const struct dense *d, idx n, idx groups, const real *x,
                 real *y);

/* The steps of all starts.  Step j: q[j] is known, y = S q[j]; gives alpha[j], beta[j] and q[j+1].
 * beta 0: that start's space is exhausted. */
struct lanczos {
  idx n, groups, most;
  real **q;           /* [most + 1] of [groups][n][8] */
  real *alpha, *beta; /* [most][8 groups] */
  struct arena arena;
};
gidx lanczos_bytes(idx n, idx groups, idx most);
int lanczos_open(struct lanczos *l, idx n, idx groups, idx most);
void lanczos_close(struct lanczos *l);
void lanczos_step(struct lanczos *l, const struct dense *d, idx j, real *y);

#endif
