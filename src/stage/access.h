/* SPDX-License-Identifier: BSD-3-Clause
 * Reads and writes that end: each runs in a worker thread and is waited for until the deadline.
 *
 * Floor: stage.  Not collective.  For stages that need no overlap of files and computing. */
#ifndef STAGE_ACCESS_H
#define STAGE_ACCESS_H

#include "base/worker.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/sink.h"

/* Run job(argument) in the worker (open and idle); ERR_IO after deadline seconds (0: no limit). */
int access_run(struct worker *w, double deadline, int (*job)(void *), void *argument);

/* x[count][p] <- rows first .. first + count - 1, checked to be finite. */
struct rows_access {
  const struct row_source *rows;
  gidx first, count;
  float *x;
};
int rows_access(struct worker *w, double deadline, struct rows_access access);

/* Write a block of a matrix. */
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
