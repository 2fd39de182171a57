/* SPDX-License-Identifier: BSD-3-Clause
 * Dense work from inside: the hot loops of one instruction set, packed operands, tiles.
 *
 * Floor: device; included by dense*.c only.
 *
 * A packed operand holds panels of `width` rows, [panel][depth][width], padded with zeros.  A tile
 * is loops->rows x loops->columns entries of the result, one chain each over the depth. */
#ifndef DEVICE_DENSE_INSIDE_H
#define DEVICE_DENSE_INSIDE_H

#include "device/dense.h"

enum {
  DEPTH_MOST = 256,  /* of packed operands: a panel of columns stays in the first cache */
  LEAF = 16,         /* columns that are factored without tiles */
  TILE_MOST = 24 * 8 /* entries of a tile */
};

struct dense_loops {
  const char *name;
  idx rows, columns; /* of a tile */
  /* c[j * stride + i] <- chain over depth of fma(a[k][i], b[k][j], c) */
  void (*tile)(idx depth, const real *a, const real *b, real *c, gidx stride);
  /* t[rows x width] <- t L^-T: column j of t loses its chain over k < j, then is divided by l_jj;
   * both column-major, width <= LEAF */
  void (*solve)(real *t, gidx stride, idx rows, idx width, const real *l, gidx l_stride);
};
extern const struct dense_loops dense_avx2, dense_avx512;

/* C += A B' over packed operands, c at its first row and column. */
struct tiles {
  const struct dense_loops *loops;
  idx depth;
  const real *a, *b;
  real *c;
  gidx stride;
  idx m, n;
  enum dense_part part;
  idx row, column; /* global ones of c[0] */
};
/* Row panels first .. end - 1 against column panels begin .. stop - 1. */
void tiles_run(const struct tiles *t, idx first, idx end, idx begin, idx stop);

/* out <- rows first .. first + count - 1 of an operand, depths from .. to - 1, width rows a
 * panel. */
void operand_pack(const struct dense_operand *o, idx first, idx count, idx from, idx to, idx width,
                  real *out);

static inline idx panels_of(idx count, idx width)
{
  return (count + width - 1) / width;
}

#endif
