/* SPDX-License-Identifier: BSD-3-Clause
 * Activation rows: where they come from, how they are centred, and the check of their values.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ROWS_H
#define MODEL_ROWS_H

#include "base/types.h"

/* Rows that can be read piece by piece as float32, rounded once.  The io floor fills this struct
 * for files. */
struct row_source {
  gidx n;           /* rows */
  idx p;            /* columns */
  const char *name; /* borrowed: for messages, FILE:/PATH */
  double row_bytes; /* of a row as it is stored, for reports of GB/s */
  void *self;       /* borrowed */
  /* out[count][p] <- rows first .. first + count - 1.  Not collective. */
  int (*read)(void *self, gidx first, idx count, float *out);
  /* Returns the name of the part (a file) that has row *row of the whole; *row <- its number in
   * that part.  NULL: there is one part. */
  const char *(*place)(void *self, gidx *row);
  int is_shared; /* several threads may read at once */
  /* For rows that are computed on GPU number `gpu`: the same as read(), but out is in the memory of
   * this GPU.  NULL: rows are not computed on a GPU.  make() does not check that values are finite;
   * read() does. */
  int (*make)(void *self, gidx first, idx count, float *out);
  int gpu;
  /* The number of rows that are stored together, and so best read together; 0: no preference.  If
   * there is one part, such a group begins at a multiple of `unit`. */
  gidx unit;
};

/* x[n][p] <- x - mean[p], computed in f64 and rounded once.  mean NULL: nothing happens. */
void rows_center(float *x, gidx n, idx p, const real *mean);

/* Is every value of x[n][p] finite? */
int rows_are_finite(const float *x, gidx n, idx p);

/* ERR_INPUT names the first value that is not finite; first is the global number of row 0. */
int rows_check(const float *x, gidx n, idx p, gidx first, const char *name);

/* As rows_check(), for rows of a source; the message also names the part that has the row. */
int rows_source_check(const struct row_source *rows, const float *x, gidx first, gidx n);

/* shift[p] <- the column means of n rows, summed in order; 0 for n = 0.  For k_c of doc/numerics.md
 * section 7 pass the first min(N, SHIFT_ROWS) rows. */
enum { SHIFT_ROWS = 1024 };
void rows_shift(const float *x, idx n, idx p, real *shift);

#endif
