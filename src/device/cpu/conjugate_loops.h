/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of (N.65) of one instruction set: some columns, side by side in memory.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_CONJUGATE_LOOPS_H
#define DEVICE_CPU_CONJUGATE_LOOPS_H

#include "base/types.h"

enum { CONJUGATE_LANES = 8, CONJUGATE_WIDTH = 64 }; /* a width is a multiple of the first */

/* A tile; columns beyond those of the job are 0. */
struct conjugate_tile {
  gidx n;
  idx s, k, width;
  const idx *atoms;          /* [n][s] */
  const float *codes;        /* [n][s] */
  const real *held, *weight; /* [k] */
  real *r, *q;               /* [n][width] what is left of the rows, and C p */
  real *d, *g, *p;           /* [k][width] atoms; gradient, then scaled; direction */
};

/* Rows or atoms first .. end - 1; sums are chains that go on, [width], as are factors. */
struct conjugate_loops {
  void (*begin)(const struct conjugate_tile *t, gidx first, gidx end); /* r - C d, then C'r */
  void (*forward)(const struct conjugate_tile *t, gidx first, gidx end, real *squares);
  void (*back)(const struct conjugate_tile *t, gidx first, gidx end, const real *alpha);
  void (*scale)(const struct conjugate_tile *t, idx first, idx end, real *gain);
  void (*combine)(const struct conjugate_tile *t, idx first, idx end, const real *beta,
                  real *curvature);
  void (*move)(const struct conjugate_tile *t, const real *alpha);
};

#endif
