/* SPDX-License-Identifier: BSD-3-Clause
 * Products of packed operands, tile by tile.
 *
 * Floor: device; included by dense*.c only.
 *
 * A packed operand is a sequence of panels of `width` rows, [panel][depth][width], padded with
 * zeros.  A tile is loops->rows x loops->columns entries of the result, one chain each over the
 * depth. */
#ifndef DEVICE_CPU_DENSE_PRODUCT_H
#define DEVICE_CPU_DENSE_PRODUCT_H

#include "device/cpu/dense_loops.h"
#include "device/dense.h"

/* C += A B' of packed operands, tile by tile; c points at the first row and column. */
struct packed_product {
  const struct dense_loops *loops;
  idx depth;
  const real *a, *b;
  real *c;
  gidx stride;
  idx m, n;
  enum dense_part part;
  idx row, column; /* global row and column of c[0] */
};

/* The tiles of row panels first .. end - 1 and column panels begin .. stop - 1. */
void tiles_multiply(const struct packed_product *t, idx first, idx end, idx begin, idx stop);

/* out[panels][depth][width] <- rows first .. first + count - 1 and depths from .. to - 1 of an
 * operand, packed in panels of `width` rows. */
void operand_pack(const struct dense_operand *o, idx first, idx count, idx from, idx to, idx width,
                  real *out);

static inline idx panels_of(idx count, idx width)
{
  return (count + width - 1) / width;
}

#endif
