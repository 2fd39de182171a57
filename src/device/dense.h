/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: factors, inverses and products of large dense symmetric matrices.  The
 * order of the operations on each entry is part of the result (N.19).
 *
 * Floor: device.
 *
 * Matrices are column-major: entry (i, j) is at [i + j * stride].  They are on the device's side of
 * a buffer (buffer.device); on a CPU device any memory will do.  A GPU is fastest if strides are
 * even.  Results have the bits of model/dense.h for any device, panel width, thread count and
 * variant: threads share the entries, but no sum is divided.  All updates of an entry are applied
 * in ascending k.  Not collective. */
#ifndef DEVICE_DENSE_H
#define DEVICE_DENSE_H

#include "device/device.h"

enum { DENSE_MIN_PANEL = 8, DENSE_MAX_PANEL = 512 };

/* Workspace of the operations below: packed operands. */
struct dense {
  struct device *device;     /* borrowed */
  idx panel, max_n;          /* columns that a CPU takes at a time; rows of the largest matrix */
  struct dense_state *state; /* owned; only the backend looks into it */
};

/* For matrices of at most max_n rows.  `panel` is from DENSE_MIN_PANEL to DENSE_MAX_PANEL.
 * ERR_MEMORY; ERR_DEVICE without fused multiply-add.  dense_close is safe on a zeroed struct. */
int dense_open(struct dense *d, struct device *dev, idx panel, idx max_n);
void dense_close(struct dense *d);
/* Bytes that dense_open() takes: on a device, which may be dry; on a CPU device with `threads`
 * threads. */
gidx device_dense_bytes(const struct device *dev, int threads, idx panel, idx max_n);
gidx cpu_dense_bytes(int threads, idx panel, idx max_n);

/* S = L L' in place, lower triangle only.  pivot[n], host memory: the pivots, before their square
 * roots are taken.  *good <- n, or the index of the first pivot that is not finite or not > 0; then
 * only the pivots up to that index are valid. */
int dense_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good);

/* Z = L^-1 in place, lower triangle only. */
int dense_inverse(struct dense *d, real *l, idx n, gidx stride);

/* A matrix as an operand: entry (i, k) is at[i * row + k * depth], and row or depth is 1.  If it is
 * triangular, entries with k < i are 0 and are not read. */
struct dense_operand {
  const real *at;
  gidx row, depth;
  int negative, is_triangular;
};

/* The entries of C that are written, by global row and column; PART_UPPER excludes the diagonal. */
enum dense_part { PART_ALL, PART_LOWER, PART_UPPER };

/* C_ij <- chain over k = depth_begin .. depth_end - 1 of fma(A_ik, B_jk, C_ij), for the rows
 * row_begin .. row_end - 1 and the columns column_begin .. column_end - 1 of C, at most max_n each.
 * c[0] is entry (row_begin, column_begin). */
struct dense_product {
  struct dense_operand a, b;
  idx row_begin, row_end, column_begin, column_end, depth_begin, depth_end;
  real *c;
  gidx stride;
  enum dense_part part;
};
int dense_product(struct dense *d, const struct dense_product *p);

/* out[i] <- entry (pairs[i][0], pairs[i][1]) of (L L')^-1 by inverse_entry(), from Z = L^-1. */
struct dense_entries {
  const real *z;
  idx n;
  gidx stride, count;
  const idx *pairs; /* [count][2] host memory */
  real *out;        /* [count] host memory */
};
int dense_entries(struct dense *d, const struct dense_entries *e);

#endif
