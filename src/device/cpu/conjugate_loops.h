/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of (N.65) of one instruction set, as a table.  A tile is some columns, side by side
 * in memory.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_CONJUGATE_LOOPS_H
#define DEVICE_CPU_CONJUGATE_LOOPS_H

#include "base/types.h"

enum { CONJUGATE_LANES = 8, CONJUGATE_WIDTH = 64 }; /* a width is a multiple of the first */

/* A tile; columns that the job does not have are 0. */
struct conjugate_tile {
  gidx n;
  idx s, k, width;
  const idx *atoms;          /* [n][s] */
  const float *codes;        /* [n][s] */
  const real *held, *weight; /* [k] */
  real *r, *q;               /* [n][width] residuals of the rows; C p */
  real *d, *g, *p;           /* [k][width] atoms; gradient, then scaled; direction */
};

/* Functions take rows or atoms first .. end - 1.  Sums and factors have [width]; sums continue
 * their chains. */
struct conjugate_loops {
  /* rows: r <- r - C d, then g <- g + C'r */
  void (*begin)(const struct conjugate_tile *t, gidx first, gidx end);
  /* rows: q <- C p, squares <- squares + q^2 */
  void (*forward)(const struct conjugate_tile *t, gidx first, gidx end, real *squares);
  /* rows: r <- r - alpha q, then g <- g + C'r */
  void (*back)(const struct conjugate_tile *t, gidx first, gidx end, const real *alpha);
  /* atoms: z = g / weight, or 0 if weight is 0; gain <- gain + g z, g <- z */
  void (*scale)(const struct conjugate_tile *t, idx first, idx end, real *gain);
  /* atoms: p <- beta p + z, curvature <- curvature + held p^2 */
  void (*combine)(const struct conjugate_tile *t, idx first, idx end, const real *beta,
                  real *curvature);
  /* all atoms: d <- d + alpha p */
  void (*move)(const struct conjugate_tile *t, const real *alpha);
};

#endif
