/* SPDX-License-Identifier: BSD-3-Clause
 * The dense triad in f32: products forward and backward, and gradients of matrices.  Also these
 * operations with a sparse matrix in place of a dense one (N.40 to N.42).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Sums are ascending chains of fma; a gradient is a sum of such chains over chunks of rows.  So no
 * bit depends on tiles, threads or ranks.  These plain loops are the references of
 * device/triad.h. */
#ifndef MODEL_TRIAD_H
#define MODEL_TRIAD_H

#include "base/types.h"

/* Rows of a chunk of (N.41); inside a chunk each entry of a gradient is one chain. */
enum { TRIAD_CHUNK = 1024 };

/* 0x7FC00000: every NaN of a product or gradient has these bits. */
float triad_nan(void);

/* A matrix from k inputs to n outputs: the entry of input i and output j is at[i * in + j * out];
 * in or out is 1.  For W[k][n] in memory, in = n and out = 1 multiply forward; in = 1 and out = n
 * multiply by its transpose. */
struct triad_weights {
  const float *at;
  gidx in, out;
};

/* (N.40) y[m][n] <- bias + x[m][k] W; bias[n], or NULL: +0.  x_stride and y_stride: distance of two
 * rows of x, and of y. */
struct triad_product {
  const float *x;
  struct triad_weights w;
  const float *bias;
  float *y;
  gidx x_stride, y_stride;
  idx m, k, n;
};
void triad_product(const struct triad_product *p);

/* (N.41) dw[k][n] <- dw + x'dy, with x[m][k] and dy[m][n], whose rows are numbered from 0. */
struct triad_gradient {
  const float *x, *dy;
  float *dw;
  gidx x_stride, dy_stride, dw_stride;
  idx m, k, n;
};
void triad_gradient(const struct triad_gradient *g);

/* A sparse matrix: list i has the entries start[i] .. start[i + 1] - 1, with ascending index.  An
 * index is the number of a row of matrix[..][width]. */
struct triad_lists {
  gidx count;
  const gidx *start;  /* [count + 1] */
  const idx *index;   /* [entries] a row of the matrix */
  const float *value; /* [entries] */
  const float *matrix;
  idx width;
};

/* (N.42) out[count][width] <- the product of the sparse matrix with `matrix`. */
void triad_sparse(const struct triad_lists *l, float *out);

/* (N.42) Add the gradient to out[count][width].  Here list i is a column of the sparse matrix, and
 * `matrix` has the rows of the batch. */
void triad_sparse_gradient(const struct triad_lists *l, float *out);

/* (N.42) out[entries] <- for each entry of list i the inner product of row i of rows[count][width]
 * and row index[entry] of the matrix.  l->value is not used. */
void triad_dots(const struct triad_lists *l, const float *rows, float *out);

#endif
