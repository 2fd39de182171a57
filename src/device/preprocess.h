/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a GPU: rows as they come to it, which then need no host: what rows_load() of
 * model/access.h does on a CPU, and the column sums of the metrics.
 *
 * Floor: device.  The bits of items_terms(), rows_center() and rows_are_finite() of model, and of
 * statistics_rows() of encode/statistics.h.  Not collective.
 *
 * A thread may take rows, and another sum columns, while the device computes for a third. */
#ifndef DEVICE_PREPROCESS_H
#define DEVICE_PREPROCESS_H

#include "device/device.h"

struct preprocess_shape {
  idx p;
  idx block;        /* rows of a call, at most */
  idx first, count; /* columns that are summed; count 0: none are */
  gidx n;           /* rows of all: sum blocks end at multiples of ROW_BLOCK, and there */
  const real *mean; /* [p] borrowed; NULL: rows stay as they are */
};

struct preprocess {
  struct device *device; /* NULL: it was not opened */
  struct preprocess_shape shape;
  struct buffer mean, shift, found;
  struct buffer chains[2]; /* real [2][count] of the sum block in progress, and of the next */
  struct buffer ended;     /* real [sum blocks][2][count] */
  int turn;                /* which of the chains is in progress */
};

/* ERR_MEMORY; ERR_DEVICE on a CPU.  preprocess_close() follows also when this fails; it is safe on
 * a zeroed struct. */
int preprocess_open(struct preprocess *in, struct device *dev,
                    const struct preprocess_shape *shape);
void preprocess_close(struct preprocess *in);

/* Rows at .. at + n - 1 of rows[..][p], on the device's side, where they are number `first` on. */
struct preprocess_job {
  const struct buffer *rows;
  gidx at, first;
  idx n;
  uint64_t terms; /* <- those of the rows as they came */
  gidx bad;       /* <- the first of them that is not finite when the mean is taken away; -1 */
};
int preprocess_run(struct preprocess *in, struct preprocess_job *job);

/* The shift of the columns that are summed: shift[p]. */
int preprocess_shift(struct preprocess *in, const real *shift);
/* Add rows 0 .. n - 1 of a buffer, number `first` on, to the columns.  They follow those of the
 * last call, or begin with a sum block.  ended <- as statistics_rows(). */
int preprocess_sums(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                    real *ended);

#endif
