/* SPDX-License-Identifier: BSD-3-Clause
 * Reads and writes by a worker thread: sources and sinks of the model.
 *
 * Floor: model.  Not collective.
 *
 * Each call hands one job to the worker, which must be open and idle, and waits for it; a struct
 * row_reader has a worker of its own, which reads ahead. */
#ifndef MODEL_ACCESS_H
#define MODEL_ACCESS_H

#include "base/memory.h"
#include "base/worker.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/sink.h"

/* Rows as jobs use them: x[count][p] <- rows first .. first + count - 1, hashed, less the mean, and
 * checked; by the threads that are spare (base/team.h), if the source lets several read. */
struct rows_load {
  const struct row_source *rows;
  gidx first;
  idx count;
  float *x;
  uint64_t *terms;  /* those of the rows as they were read (identity.h) are added; NULL */
  const real *mean; /* NULL: they stay as they are */
  const struct row_source
      *whole; /* names the first value that is not finite; NULL: not looked for */
  gidx place; /* of row `first` in the whole: counts for terms, too */
};
int rows_load(const struct rows_load *load);

/* x[count][p] <- rows first .. first + count - 1.  ERR_INPUT when a value is not finite. */
struct rows_access {
  const struct row_source *rows;
  gidx first, count;
  float *x;
};
int rows_access(struct worker *w, struct rows_access access);
/* The same without that check, for rows that are a part of others. */
int rows_fetch(struct worker *w, struct rows_access access);

/* Rows piece after piece: while one is looked at, the next is read. */
struct row_reader {
  const struct row_source *rows; /* borrowed */
  struct worker worker;
  gidx most;       /* rows of a piece */
  float *x, *next; /* [most][p] at hand, and ahead */
  gidx first, count;
  int is_ahead; /* those rows were begun */
};
/* Arrays are the arena's.  row_reader_close() is safe on a zeroed struct, and waits: where the
 * reader is on the stack, before its function returns, be it an error. */
int row_reader_open(struct row_reader *r, const struct row_source *rows, struct arena *arena);
void row_reader_close(struct row_reader *r);
/* r->x[count][p] <- rows first .. first + count - 1; then begin to read the n rows from `ahead` on,
 * which the next call takes.  ERR_INPUT when a value is not finite. */
int row_reader_take(struct row_reader *r, gidx first, gidx count, gidx ahead, gidx n);

/* shift[p] <- the column means of the first n = min(N, SHIFT_ROWS) rows, less `mean` where it is
 * not NULL: the shift of doc/numerics.md section 7.  x: room for [n][p].  ERR_INPUT when a value is
 * not finite. */
int shift_access(struct worker *w, const struct row_source *rows, const real *mean, float *x,
                 real *shift);

/* Write items first .. first + count - 1 of a matrix. */
struct matrix_access {
  const struct matrix_sink *sink;
  gidx first, count;
  const float *values;
};
int matrix_access(struct worker *w, struct matrix_access access);

/* Write a block of supports. */
int support_access(struct worker *w, const struct support_sink *sink,
                   const struct support_block *block);

#endif
