/* SPDX-License-Identifier: BSD-3-Clause
 * Reading from sources and writing to sinks by a worker thread.
 *
 * Floor: model.  Not collective.
 *
 * Each call gives one job to the worker, which must be open and idle, and waits for it.  A struct
 * row_reader has a worker of its own, which reads ahead. */
#ifndef MODEL_ACCESS_H
#define MODEL_ACCESS_H

#include "base/memory.h"
#include "base/worker.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/sink.h"

/* Read rows as jobs use them: x[count][p] <- rows first .. first + count - 1, hashed, less the
 * mean, and checked.  The spare threads (base/team.h) read, if the source allows several. */
struct rows_load {
  const struct row_source *rows;
  gidx first;
  idx count;
  float *x;
  uint64_t *terms;  /* the hash terms of the rows as read (identity.h) are added here; NULL: not
                     * wanted */
  const real *mean; /* NULL: nothing is subtracted */
  /* Its name and row numbers are used when a value is not finite; NULL: rows are not
   * checked. */
  const struct row_source *whole;
  gidx place; /* number of row `first` in the whole; terms depend on it, too */
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

/* Rows piece after piece: the next piece is read while the caller uses the present one. */
struct row_reader {
  const struct row_source *rows; /* borrowed */
  struct worker worker;
  gidx most;       /* rows of a piece, at most */
  float *x, *next; /* [most][p] the present piece, and the next */
  gidx first, count;
  int is_ahead; /* reading of the next piece has begun */
};
/* Arrays live in the arena.  row_reader_close() is safe on a zeroed struct, and waits for the
 * worker.  If the reader is on the stack, it must be closed before its function returns, also on
 * errors. */
int row_reader_open(struct row_reader *r, const struct row_source *rows, struct arena *arena);
void row_reader_close(struct row_reader *r);
/* r->x[count][p] <- rows first .. first + count - 1.  Then begin to read the n rows from `ahead`
 * on, which the next call should ask for.  ERR_INPUT when a value is not finite. */
int row_reader_take(struct row_reader *r, gidx first, gidx count, gidx ahead, gidx n);

/* shift[p] <- the shift of doc/numerics.md section 7: the column means of the first n = min(N,
 * SHIFT_ROWS) rows, less `mean` unless it is NULL.  x: work space [n][p].  ERR_INPUT when a value
 * is not finite. */
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
