/* SPDX-License-Identifier: BSD-3-Clause
 * Reading from sources and writing to sinks by a worker thread.
 *
 * Floor: model.  Not collective.
 *
 * A function with a worker among its arguments gives it one job, and waits for it; the worker must
 * be open and idle.  A struct row_reader has a worker of its own, which reads ahead. */
#ifndef MODEL_ACCESS_H
#define MODEL_ACCESS_H

#include "base/memory.h"
#include "base/worker.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/sink.h"

/* x[count][p] <- rows first .. first + count - 1, as jobs use them: they are hashed, the mean is
 * subtracted, and values are checked to be finite.  The spare threads (base/team.h) help if several
 * threads may read the source. */
struct rows_load {
  const struct row_source *rows;
  gidx first;
  idx count;
  float *x;
  /* the sum of the hash terms (identity.h) of the rows, without centring, is added here; NULL: rows
   * are not hashed */
  uint64_t *terms;
  const real *mean; /* NULL: nothing is subtracted */
  /* If a value is not finite, the message gives the name and row number of this source.  NULL: rows
   * are not checked. */
  const struct row_source *whole;
  gidx place; /* number of row `first` in `whole`; hash terms depend on it, too */
};
int rows_load(const struct rows_load *load);

/* x[count][p] <- rows first .. first + count - 1.  ERR_INPUT when a value is not finite. */
struct rows_access {
  const struct row_source *rows;
  gidx first, count;
  float *x;
};
int rows_access(struct worker *w, struct rows_access access);
/* The same, but values that are not finite are no error.  For callers that check the rows
 * themselves. */
int rows_fetch(struct worker *w, struct rows_access access);

/* Rows piece after piece: the next piece is read while the caller uses the present one. */
struct row_reader {
  const struct row_source *rows; /* borrowed */
  struct worker worker;
  gidx most;       /* the largest number of rows of a piece */
  float *x, *next; /* [most][p] the present piece, and the next */
  gidx first, count;
  int is_ahead; /* reading of the next piece has begun */
};
/* Arrays live in the arena.  row_reader_close() is safe on a zeroed struct, and waits for the
 * worker.  If the reader is on the stack, it must be closed before its function returns, also on
 * errors. */
int row_reader_open(struct row_reader *r, const struct row_source *rows, struct arena *arena);
void row_reader_close(struct row_reader *r);
/* r->x[count][p] <- rows first .. first + count - 1, at most r->most.  Then begin to read rows
 * ahead .. ahead + n - 1, also at most r->most; unless n is 0, the next call must ask for exactly
 * these.  ERR_INPUT when a value is not finite. */
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
