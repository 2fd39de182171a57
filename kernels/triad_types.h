/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of training agree on (N.40 to N.44).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone. */
#ifndef TRIAD_TYPES_H
#define TRIAD_TYPES_H

#include "forms.h"

enum {
  TRIAD_SIDE = 16,          /* threads along each side of a tile */
  TRIAD_STAGE = 8,          /* depths that are in shared memory at a time, twice */
  TRIAD_PRODUCT_TILE = 128, /* rows and columns of a tile of triad_product */
  TRIAD_GRADIENT_TILE = 64, /* of triad_gradient */
  TRIAD_CHUNK_ROWS = 1024,  /* of a chain of triad_gradient (N.41) */
  TRIAD_THREADS = 128,      /* of the sparse kernels, and of Adam */
  TRIAD_MAX_LISTS = 1 << 20
};

/* c[rows][columns], rows at c_row <- sums over depths of a(row, depth) b(depth, column); of each
 * operand one stride is 1.  start[columns]: where chains begin; NULL: at +0. */
struct triad_args {
  const float *a, *b, *start;
  float *c;
  long long a_row, a_depth, b_depth, b_column, c_row;
  int rows, columns, depth;
  int only_positive; /* of a product: what is not becomes 0 */
};

/* struct triad_lists of model/triad.h; out as its functions have it. */
struct triad_list_args {
  long long count;
  const long long *start;
  const int *index;
  const float *value, *matrix, *rows; /* rows: of dots alone */
  float *out;
  int width, is_gradient;
};

/* struct adam_state and struct adam_rates of model/adam.h. */
struct triad_adam_args {
  float *w, *m, *v;
  const float *g;
  long long count;
  float rate, correction;
};

#endif
