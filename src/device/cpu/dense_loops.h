/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of dense matrices of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A tile is `rows` x `columns` entries of the result.  Each entry is one chain over the depth. */
#ifndef DEVICE_CPU_DENSE_LOOPS_H
#define DEVICE_CPU_DENSE_LOOPS_H

#include "base/types.h"

enum {
  DENSE_MAX_DEPTH = 256,  /* of packed operands; so a panel of columns stays in the L1 cache */
  DENSE_MAX_LANES = 8,    /* doubles in the widest vector */
  DENSE_LEAF = 16,        /* columns that are factored without tiles */
  DENSE_MAX_TILE = 24 * 8 /* the most entries of a tile */
};

/* Arguments of update and corner. */
struct dense_update {
  idx depth, rows, columns;
  const real *a, *b;
  real *c;
  gidx a_stride, b_stride, c_stride;
};

struct dense_corner {
  idx count, d;
  const real *ee, *t, *s;
  gidx stride;
  real t_b;
  real *out;
};

struct dense_loops {
  const char *name;
  idx rows, columns; /* of a tile */
  /* c[j * stride + i] <- chain over depth of fma(a[k][i], b[k][j], c) */
  void (*tile)(idx depth, const real *a, const real *b, real *c, gidx stride);
  /* t[rows x width] <- t L^-T: subtract from column j its chain over k < j, then divide by l_jj;
   * t and l are column-major, width <= DENSE_LEAF */
  void (*solve)(real *t, gidx stride, idx rows, idx width, const real *l, gidx l_stride);
  /* out[j * rows + i] <- chain over depth of a[k][i] b[k * b_stride + j] from +0; count columns */
  void (*chains)(idx depth, const real *a, const real *b, gidx b_stride, idx count, real *out);
  /* c[j * c_stride + i] <- chain over depth of fma(-a[k * a_stride + i], b[k * b_stride + j], c)
   * for i < rows, rounded up to DENSE_MAX_LANES, and j < columns */
  void (*update)(const struct dense_update *u);
  /* out[c] <- chain over j of fma(-codes[j], vector[j][c], out) from x[c] */
  void (*residual)(const float *x, const float *const *vector, const float *codes, idx m, idx p,
                   real *out);
  /* packed[p][rows] <- m <= rows vectors, widened; other rows are left unchanged */
  void (*widen)(const float *const *vector, idx m, idx p, real *packed);
  /* out[i] <- fma(ee[i / d * stride], t[i] t_b, s[i]) for i < count */
  void (*corner)(const struct dense_corner *c);
  /* (N.5) on g[M][M]: kept[m] <- the vectors that the rank test keeps; l, column-major [m] with
   * stride M <- their factor with rho; returns m */
  idx (*factor)(const real *g, idx big_m, real rho, idx *kept, real *l, real *pivot);
  /* eight vectors side by side, x[n][8].  apply: y <- y + A x on the rows and columns border[width]
   * of S, for A = a[width][width], one chain per row.  dots: out[8] <- chains of x y.  subtract:
   * y <- fma(-s[8], x, y) */
  void (*apply)(const real *a, idx width, const idx *border, const real *x, real *y);
  void (*dots)(idx n, const real *x, const real *y, real *out);
  void (*subtract)(idx n, const real *s, const real *x, real *y);
};

#endif
