/* SPDX-License-Identifier: BSD-3-Clause
 * Dense symmetric systems at the speed of the CPU's fused multiply-add, in exact order (N.19).
 *
 * Floor: device.  Knows model and base; no MPI, no files.  Not collective.
 *
 * Matrices are column-major, entry (i, j) at [i + j * stride].  Results have the bits of
 * model/dense.h for any panel width, thread count and variant: work is shared out over entries,
 * and updates are applied in ascending k onto the entry itself. */
#ifndef DEVICE_DENSE_H
#define DEVICE_DENSE_H

#include "base/memory.h"
#include "base/types.h"

enum { PANEL_LEAST = 8, PANEL_MOST = 512 };

struct dense {
  const struct dense_loops *loops;
  int threads;
  idx panel, n_most;
  real *a, *b, *own; /* packed operands: of all threads, of each */
  real *turned;      /* [panel][n_most] rows of an inverse */
  struct arena arena;
};

/* For matrices of at most n_most rows.  variant as of device_open(); panel is the number of columns
 * done at a time, PANEL_LEAST .. PANEL_MOST.  ERR_DEVICE without hardware FMA. */
int dense_open(struct dense *d, const char *variant, int threads, idx panel, idx n_most);
void dense_close(struct dense *d);
/* Bytes that dense_open() takes. */
gidx dense_bytes(int threads, idx panel, idx n_most);
const char *dense_variant(const struct dense *d);

/* S = L L' in place, lower triangle alone; pivot[n] are the accumulators before their roots.
 * Returns n, or the first pivot that is not finite or not > 0. */
idx dense_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot);

/* Z = L^-1 in place, lower triangle alone. */
void dense_inverse(struct dense *d, real *l, idx n, gidx stride);

/* A matrix read by rows and depths: at[i * row + k * depth]; of a triangular one only depths
 * k >= i exist, all others are 0. */
struct dense_operand {
  const real *at;
  gidx row, depth;
  int negative, is_triangular;
};

/* Which entries of C are touched, by global row and column; UPPER is without the diagonal. */
enum dense_part { PART_ALL, PART_LOWER, PART_UPPER };

/* C_ij <- chain over k = from .. to - 1 of fma(A_ik, B_jk, C_ij), rows first .. end - 1, columns
 * begin .. stop - 1 of C, whose entry (first, begin) is c[0]; at most n_most rows and columns. */
struct dense_product {
  struct dense_operand a, b;
  idx first, end, begin, stop, from, to;
  real *c;
  gidx stride;
  enum dense_part part;
};
void dense_product(struct dense *d, const struct dense_product *p);

#endif
