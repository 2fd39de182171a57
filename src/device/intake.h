/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a GPU: rows as they come to it, which then need no host: what rows_load() of
 * model/access.h does on a CPU, and the column sums of the metrics.
 *
 * Floor: device.  The bits of items_terms(), rows_center() and rows_are_finite() of model, and of
 * statistics_rows() of encode/statistics.h.  Not collective.
 *
 * A thread may take rows, and another sum columns, while the device computes for a third. */
#ifndef DEVICE_INTAKE_H
#define DEVICE_INTAKE_H

#include "device/device.h"

struct intake_shape {
  idx p;
  idx block;        /* rows of a call, at most */
  idx first, count; /* columns that are summed; count 0: none are */
  gidx n;           /* rows of all: sum blocks end at multiples of ROW_BLOCK, and there */
  const real *mean; /* [p] borrowed; NULL: rows stay as they are */
};

struct intake {
  struct device *device; /* NULL: it was not opened */
  struct intake_shape shape;
  struct buffer mean, shift, found;
  struct buffer chains[2]; /* real [2][count] of the sum block in progress, and of the next */
  struct buffer ended;     /* real [sum blocks][2][count] */
  int turn;                /* which of the chains is in progress */
};

/* ERR_MEMORY; ERR_DEVICE on a CPU.  intake_close() follows also when this fails; it is safe on a
 * zeroed struct. */
int intake_open(struct intake *in, struct device *dev, const struct intake_shape *shape);
void intake_close(struct intake *in);

/* Rows at .. at + n - 1 of rows[..][p], on the device's side, where they are number `first` on. */
struct intake_job {
  const struct buffer *rows;
  gidx at, first;
  idx n;
  uint64_t terms; /* <- those of the rows as they came */
  gidx bad;       /* <- the first of them that is not finite when the mean is taken away; -1 */
};
int intake_take(struct intake *in, struct intake_job *job);

/* The shift of the columns that are summed: shift[p]. */
int intake_shift(struct intake *in, const real *shift);
/* Add rows 0 .. n - 1 of a buffer, number `first` on, to the columns.  They follow those of the
 * last call, or begin with a sum block.  ended <- as statistics_rows(). */
int intake_sums(struct intake *in, const struct buffer *rows, gidx first, idx n, real *ended);

#endif
