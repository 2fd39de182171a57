/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments and sizes that launchers and kernels of dense matrices share (N.19).  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * Matrices are column-major.  The factor is made in panels of FACTOR_WIDTH columns; up to
 * FACTOR_OUTER columns are applied at once to the columns on their right.  The *square* of a panel,
 * its block on the diagonal, is kept in `corners` until the end, because every block of threads
 * that solves rows below it reads it and factors it for itself. */
#ifndef DENSE_TYPES_H
#define DENSE_TYPES_H

#include "forms.h"

enum {
  PRODUCT_ROWS = 128, /* rows, and columns, of a large tile of dense_product */
  PRODUCT_DEPTH = 16, /* depth of a stage */
  PRODUCT_WARPS = 8,
  PRODUCT_GROUP = 8, /* tiles below each other that blocks take one after another */
  FACTOR_WIDTH = 64,
  FACTOR_OUTER = 512,
  FACTOR_LEAF = 16, /* columns in registers at a time */
  FACTOR_STEP = 4,  /* columns that are finished before the others move down in the registers */
  FACTOR_THREADS = 128,
  FACTOR_ROWS =
      FACTOR_THREADS - FACTOR_WIDTH, /* rows of a block of dense_factor below the square */
  ENTRIES_THREADS = 64
};

/* As struct dense_operand of device/dense.h; one of the strides `row` and `depth` is 1. */
struct product_side {
  const double *at;
  long long row, depth;
  int is_triangular;
};

/* C_ij <- chain over k of fma(A_ik, B_jk, C_ij), as struct dense_product.  Only entries with
 * least <= i - j <= most are written. */
struct product_args {
  struct product_side a, b;
  double *c; /* entry (row_begin, column_begin) */
  long long c_row, c_column;
  int row_begin, row_end, column_begin, column_end, depth_begin, depth_end;
  int is_negative; /* 1: the products are subtracted */
  int least, most;
};

/* One compiled form of dense_product.cu; its members are the -D options of the same names. */
struct product_form {
  int deep_a, deep_b; /* DEEP_A, DEEP_B: contiguous along the depth */
  int rows, columns;  /* ROWS, COLUMNS of a tile */
  int stages;         /* STAGES */
};

/* narrow: 1: tiles have half the columns; 2: they have half the rows, too.  large: a block has
 * shared memory for more stages. */
HOST_DEVICE struct product_form product_form_of(int deep_a, int deep_b, int narrow, int large)
{
  int rows = narrow > 1 ? PRODUCT_ROWS / 2 : PRODUCT_ROWS;
  struct product_form f = {deep_a, deep_b, rows, narrow ? PRODUCT_ROWS / 2 : PRODUCT_ROWS,
                           large ? 4 : 2};
  return f;
}

/* Reals between rows of a stage, such that no two lanes of half a warp have a bank conflict. */
HOST_DEVICE int product_pitch(int deep, int rows)
{
  return (deep ? PRODUCT_DEPTH : rows) + 4;
}

HOST_DEVICE int product_side_values(int deep, int rows)
{
  return (deep ? rows : PRODUCT_DEPTH) * product_pitch(deep, rows);
}

HOST_DEVICE int product_shared_bytes(struct product_form f)
{
  return f.stages * 8 *
         (product_side_values(f.deep_a, f.rows) + product_side_values(f.deep_b, f.columns));
}

/* The most shared memory of a form with four stages. */
enum { PRODUCT_LARGE = 4 * 8 * 2 * PRODUCT_ROWS * (PRODUCT_DEPTH + 4) };

/* A panel: columns first .. first + FACTOR_WIDTH - 1, as far as they exist.  All columns before it
 * have been applied to it. */
struct factor_args {
  double *s;
  long long stride;
  int n, first;
  double *corners; /* [panels][FACTOR_WIDTH][FACTOR_WIDTH], column-major */
  double *pivots;  /* [n] */
  int *good;       /* n, or the first bad pivot */
};

/* Shared memory of a block of dense_solve (dense_rows.h), and of dense_factor. */
enum {
  SOLVE_SHARED = 8 * (FACTOR_WIDTH * (FACTOR_WIDTH + FACTOR_LEAF) +
                      (FACTOR_WIDTH - FACTOR_LEAF) * FACTOR_THREADS),
  FACTOR_SHARED = SOLVE_SHARED + 40
};

/* Rows first .. first + width - 1 of Z, width <= FACTOR_WIDTH, in columns 0 .. first + width - 1.
 * The chains over the rows before them are already subtracted. */
struct solve_args {
  double *z; /* entry (0, 0) */
  long long stride;
  int first, width;
  const double *l; /* entry (first, first) of L */
  long long l_stride;
};

/* Columns first .. first + width - 1 of L are moved to `work`, from entry (first, first) on; unit
 * vectors take their place. */
struct unit_args {
  double *s;
  long long stride;
  int n, first, width;
  double *work;
  long long work_stride;
};

struct entries_args {
  const double *z;
  long long stride;
  int n, count;
  const int *pairs; /* [count][2] */
  double *out;      /* [count] */
};

#endif
