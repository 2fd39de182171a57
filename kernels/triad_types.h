/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments and sizes that launchers and kernels of training share (N.40 to N.44).  C11 that is
 * also CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone. */
#ifndef TRIAD_TYPES_H
#define TRIAD_TYPES_H

#include "forms.h"

enum {
  TRIAD_DEPTHS = 16,       /* depth of a stage in shared memory */
  TRIAD_CHUNK_ROWS = 1024, /* rows of a chain of triad_gradient (N.41) */
  TRIAD_THREADS = 128,     /* threads of triad_dots and triad_adam */
  TRIAD_SPARSE_THREADS = 64,
  TRIAD_TRANSPOSE_THREADS = 256,
  TRIAD_MAX_LISTS = 1 << 20,
  TRIAD_LANES_DOWN = 4, /* lanes of a warp along the rows of a tile; 8 along its columns */
  TRIAD_LANES_ACROSS = 8
};

/* The tile of a block.  A thread has row_quads groups of four rows, and column_quads groups of four
 * columns.  beside: blocks on a multiprocessor.  parts: parts in which the copies of a stage are
 * started, one per depth.  There are more copies if teams divide tiles, or if an operand is
 * contiguous along its depth; then most_parts is used instead.  slots: stages in shared memory. */
struct triad_form {
  int rows, columns, row_quads, column_quads, beside, parts, most_parts, slots;
};

/* Kinds of tiles of products. */
enum { TRIAD_LARGE, TRIAD_SMALL, TRIAD_MIDDLE };

/* Products have large tiles if these fill the GPU evenly, otherwise small or middle ones.
 * Gradients have large tiles if all tiles are whole. */
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

/* Shared memory of a gradient.  It also has room for the sums of a chunk. */
HOST_DEVICE int triad_gradient_shared(struct triad_form f)
{
  return triad_shared(f) + f.rows * f.columns * 4;
}

/* Columns for each number of triad_args.maxima. */
HOST_DEVICE int triad_group(struct triad_form f)
{
  return TRIAD_LANES_ACROSS * 4 * f.column_quads;
}

/* Teams of blocks divide tiles by stages, if the last whole tiles would leave much of the GPU idle.
 * The matrix has few lines (rows or columns) of tiles, and each block of a team has one line.  The
 * stages of a line are divided equally among the teams, so each team reads its part of the larger
 * operand once.  If one team begins a tile and the next team ends it, the tile is passed on. */
struct triad_teams {
  int count;      /* of teams; 0: a block has whole tiles */
  int blocks;     /* of a team */
  int tiles;      /* of a line */
  int are_rows;   /* 1: a line is a column of tiles, so tiles differ in their rows */
  float *passed;  /* [count][blocks][outputs of a tile] chains so far */
  int *is_passed; /* [count][blocks], 0 at first */
};

/* c[rows][columns] <- sums over depths of a(row, depth) b(depth, column).  Rows of c are c_row
 * numbers apart.  One stride of each operand is 1.  start[columns]: the first values of the chains;
 * NULL: +0. */
struct triad_args {
  const float *a, *b, *start;
  float *c;
  long long a_row, a_depth, b_depth, b_column, c_row;
  int rows, columns, depth;
  /* Products: the depth of a chunk, and the distance between the results of two chunks.  There are
   * several chunks only in a product that is part of a gradient. */
  int chunk;
  long long part;
  /* Products: [rows][groups] the maximum of each group of columns, or 0 if that is larger; results
   * that are not positive become 0.  NULL: results are stored as they are. */
  float *maxima;
  int groups;
  /* Gradients.  tiles: number of tiles; across: tiles in a row of tiles.  sums: for each block the
   * sums of a tile, and with teams once more the same number, for tiles that are passed on. */
  int tiles, across;
  double *sums;
  struct triad_teams teams;
};

/* c[rows][columns] <- c + the sum of parts[chunks][rows][columns] over chunks, made in f64.  Rows
 * of c are c_row numbers apart. */
struct triad_fold_args {
  const float *parts;
  float *c;
  long long c_row;
  int rows, columns, chunks;
};

/* out[depths][lines] <- in[lines][depths], whose lines are `stride` apart. */
struct triad_transpose_args {
  const float *in;
  float *out;
  long long stride;
  int lines, depths;
};

/* struct triad_lists of model/triad.h, and the argument `out` of the functions that take it. */
struct triad_list_args {
  long long count;
  const long long *start;
  const int *index;
  const float *value, *matrix, *rows; /* rows: for dots only */
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
