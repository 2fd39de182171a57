/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: factors, inverses and products of large dense symmetric matrices, in an
 * order that is part of the result (N.19).
 *
 * Floor: device.
 *
 * Matrices are column-major, entry (i, j) at [i + j * stride], and stand on the device's side of a
 * buffer (buffer.device): on a CPU device any memory will do.  A GPU is fastest where strides are
 * even.  Results have the bits of model/dense.h for any device, panel width, thread count and
 * variant: work is shared out over entries, and updates are applied in ascending k onto the entry
 * itself.  Not collective. */
#ifndef DEVICE_DENSE_H
#define DEVICE_DENSE_H

#include "device/device.h"

enum { DENSE_MIN_PANEL = 8, DENSE_MAX_PANEL = 512 };

/* What the operations below work in: packed operands of a device. */
struct dense {
  struct device *device;     /* borrowed */
  idx panel, max_n;          /* columns done at a time by a CPU; rows of the largest matrix */
  struct dense_state *state; /* owned; only the backend looks into it */
};

/* For matrices of at most max_n rows, DENSE_MIN_PANEL .. DENSE_MAX_PANEL columns at a time.
 * ERR_MEMORY; ERR_DEVICE without fused multiply-add.  dense_close is safe on a zeroed struct. */
int dense_open(struct dense *d, struct device *dev, idx panel, idx max_n);
void dense_close(struct dense *d);
/* Bytes that dense_open() takes on a device, which may be dry; and on a CPU device of so many
 * threads. */
gidx device_dense_bytes(const struct device *dev, int threads, idx panel, idx max_n);
gidx cpu_dense_bytes(int threads, idx panel, idx max_n);

/* S = L L' in place, lower triangle alone; pivot[n], the host's, are the accumulators before their
 * roots.  *good <- n, or the first pivot that is not finite or not > 0: the pivots up to it are
 * right, and nothing else. */
int dense_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good);

/* Z = L^-1 in place, lower triangle alone. */
int dense_inverse(struct dense *d, real *l, idx n, gidx stride);

/* A matrix read by rows and depths: at[i * row + k * depth], and row or depth is 1; of a triangular
 * one only depths k >= i exist, all others are 0. */
struct dense_operand {
  const real *at;
  gidx row, depth;
  int negative, is_triangular;
};

/* Which entries of C are touched, by global row and column; UPPER is without the diagonal. */
enum dense_part { PART_ALL, PART_LOWER, PART_UPPER };

/* C_ij <- chain over k = depth_begin .. depth_end - 1 of fma(A_ik, B_jk, C_ij), for the rows
 * row_begin .. row_end - 1 and the columns column_begin .. column_end - 1 of C, at most max_n each;
 * c[0] is entry (row_begin, column_begin). */
struct dense_product {
  struct dense_operand a, b;
  idx row_begin, row_end, column_begin, column_end, depth_begin, depth_end;
  real *c;
  gidx stride;
  enum dense_part part;
};
int dense_product(struct dense *d, const struct dense_product *p);

/* out[i] <- entry (pairs[2 i], pairs[2 i + 1]) of (L L')^-1 by inverse_entry(), from Z = L^-1. */
struct dense_entries {
  const real *z;
  idx n;
  gidx stride, count;
  const idx *pairs; /* [count][2] host */
  real *out;        /* [count] host */
};
int dense_entries(struct dense *d, const struct dense_entries *e);

#endif
