/* SPDX-License-Identifier: BSD-3-Clause
 * What launchers and kernels of training agree on (N.40 to N.44).  C11 that is also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone. */
#ifndef TRIAD_TYPES_H
#define TRIAD_TYPES_H

#include "forms.h"

enum {
  TRIAD_DEPTHS = 16,       /* of a stage in shared memory */
  TRIAD_CHUNK_ROWS = 1024, /* of a chain of triad_gradient (N.41) */
  TRIAD_THREADS = 128,     /* of the sparse kernels, and of Adam */
  TRIAD_SPARSE_THREADS = 64,
  TRIAD_TRANSPOSE_THREADS = 256,
  TRIAD_MAX_LISTS = 1 << 20,
  TRIAD_LANES_DOWN = 4, /* of a warp, along the rows of a tile; 8 are along its columns */
  TRIAD_LANES_ACROSS = 8
};

/* A block's tile: a thread has as many groups of four rows, and of four columns.  `beside`: blocks
 * of a multiprocessor; `parts`: in which a stage's copies are ordered, one beside each depth, and
 * `most_parts` with teams, or where depths of an operand are beside each other: more copies; slots:
 * of stages, more where few blocks wait for memory together. */
struct triad_form {
  int rows, columns, row_quads, column_quads, beside, parts, most_parts, slots;
};

/* Tiles of products. */
enum { TRIAD_LARGE, TRIAD_SMALL, TRIAD_MIDDLE };

/* Of products large tiles, where these fill the GPU evenly, and others; of gradients
 * large ones where all are whole. */
HOST_DEVICE struct triad_form triad_product_form(int tiles)
{
  struct triad_form large_form = {128, 128, 2, 2, 2, 2, 6, 2},
                    small_form = {128, 64, 2, 2, 4, 8, 8, 4};
  struct triad_form middle_form = {64, 192, 2, 3, 3, 8, 8, 4};
  return tiles == TRIAD_LARGE ? large_form : tiles == TRIAD_SMALL ? small_form : middle_form;
}

HOST_DEVICE struct triad_form triad_gradient_form(int whole)
{
  struct triad_form whole_form = {128, 128, 2, 2, 2, 4, 4, 2}, form = {64, 128, 2, 2, 2, 4, 4, 2};
  return whole ? whole_form : form;
}

HOST_DEVICE int triad_threads(struct triad_form f)
{
  return f.rows / (4 * f.row_quads) * (f.columns / (4 * f.column_quads));
}

HOST_DEVICE int triad_shared(struct triad_form f)
{
  return f.slots * TRIAD_DEPTHS * (f.rows + 4 + f.columns + 4) * 4;
}

/* A chunk's sums too. */
HOST_DEVICE int triad_gradient_shared(struct triad_form f)
{
  return triad_shared(f) + f.rows * f.columns * 4;
}

/* Columns that a number of triad_args.maxima stands for. */
HOST_DEVICE int triad_group(struct triad_form f)
{
  return TRIAD_LANES_ACROSS * 4 * f.column_quads;
}

/* Tiles that are shared out to the stage, where the last whole ones would leave much of the GPU
 * idle.  The matrix has few lines of tiles, and a block of a team each of them; along the lines all
 * teams have as many stages, so that each reads its part of the larger operand once.  A tile that
 * ends in another team than it began in is passed on. */
struct triad_teams {
  int count;      /* 0: a block has whole tiles */
  int blocks;     /* of a team */
  int tiles;      /* of a line */
  int are_rows;   /* a team's tiles are beside each other, else below */
  float *passed;  /* [count][blocks][outputs of a tile]: chains so far */
  int *is_passed; /* [count][blocks], 0 at first */
};

/* c[rows][columns], rows at c_row <- sums over depths of a(row, depth) b(depth, column); of each
 * operand one stride is 1.  start[columns]: where chains begin; NULL: at +0. */
struct triad_args {
  const float *a, *b, *start;
  float *c;
  long long a_row, a_depth, b_depth, b_column, c_row;
  int rows, columns, depth;
  /* Of a product: depths of a chunk, all unless it is of a gradient, and from the results of one to
   * those of the next. */
  int chunk;
  long long part;
  /* Of a product: [rows][groups] the largest of each group of columns, or 0; and what is not
   * positive becomes 0.  NULL: as it is. */
  float *maxima;
  int groups;
  /* Of a gradient: its tiles, so many beside each other, and sums of a tile for each block; with
   * teams as many again, of tiles that are passed. */
  int tiles, across;
  double *sums;
  struct triad_teams teams;
};

/* c[rows][columns], rows at c_row <- c + the parts[chunks][rows][columns], added in f64. */
struct triad_fold_args {
  const float *parts;
  float *c;
  long long c_row;
  int rows, columns, chunks;
};

/* out[depths][lines] <- in[lines][depths], whose lines are at a stride. */
struct triad_transpose_args {
  const float *in;
  float *out;
  long long stride;
  int lines, depths;
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
