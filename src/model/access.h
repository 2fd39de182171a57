/* SPDX-License-Identifier: BSD-3-Clause
 * Reads and writes with a deadline: sources and sinks of the model, used from a worker thread.
 *
 * Floor: model.  Not collective.  For jobs that do not overlap files and computation.
 *
 * Each call hands one job to the worker, which must be open and idle, and waits for it.  After
 * `deadline` seconds (0: no limit) it returns ERR_IO and the thread is left behind; the arrays and
 * what `self` of a source or sink points to must then stay until the program ends. */
#ifndef MODEL_ACCESS_H
#define MODEL_ACCESS_H

#include "base/worker.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/sink.h"

/* Run job(argument); the argument must stay as well.  worker_run() copies it instead. */
int access_run(struct worker *w, double deadline, int (*job)(void *), void *argument);

/* x[count][p] <- rows first .. first + count - 1.  ERR_INPUT when a value is not finite. */
struct rows_access {
  const struct row_source *rows;
  gidx first, count;
  float *x;
};
int rows_access(struct worker *w, double deadline, struct rows_access access);

/* shift[p] <- the column means of the first n = min(N, SHIFT_ROWS) rows, less `mean` where it is
 * not NULL: the shift of doc/numerics.md section 7.  x: room for [n][p].  ERR_INPUT when a value is
 * not finite. */
int shift_access(struct worker *w, double deadline, const struct row_source *rows, const real *mean,
                 float *x, real *shift);

/* Write items first .. first + count - 1 of a matrix. */
struct matrix_access {
  const struct matrix_sink *sink;
  gidx first, count;
  const float *values;
};
int matrix_access(struct worker *w, double deadline, struct matrix_access access);

/* Write a block of supports. */
int support_access(struct worker *w, double deadline, const struct support_sink *sink,
                   const struct support_block *block);

#endif
