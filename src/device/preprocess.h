/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a GPU on rows as they are read, so that the host need not touch them: what
 * rows_load() of model/access.h does on a CPU, and the column sums of the metrics.
 *
 * Floor: device.  Results have the bits of items_terms(), rows_center() and rows_are_finite() of
 * model, and of statistics_rows() of encode/statistics.h.  Not collective.
 *
 * One thread may call preprocess_run() and another preprocess_sums() while a third computes. */
#ifndef DEVICE_PREPROCESS_H
#define DEVICE_PREPROCESS_H

#include "device/device.h"

struct preprocess_shape {
  idx p;
  idx block;        /* the most rows of a call */
  idx first, count; /* columns that are summed; count 0: none */
  gidx n;           /* all rows of the job; the last sum block ends at row n */
  const real *mean; /* [p] borrowed; NULL: rows are not centred */
};

struct preprocess {
  struct device *device; /* NULL: not open */
  struct preprocess_shape shape;
  struct buffer mean, shift, found;
  struct buffer chains[2]; /* real [2][count] of the sum block in progress, and of the next one */
  struct buffer ended;     /* real [sum blocks][2][count] */
  int turn;                /* index in chains of the sum block in progress */
};

/* ERR_MEMORY; ERR_DEVICE on a CPU.  Call preprocess_close() also after a failure; it is safe on a
 * zeroed struct. */
int preprocess_open(struct preprocess *in, struct device *dev,
                    const struct preprocess_shape *shape);
void preprocess_close(struct preprocess *in);

/* Hash, centre and check the rows at .. at + n - 1 of rows[..][p] on the device's side; their
 * global numbers begin at `first`. */
struct preprocess_job {
  const struct buffer *rows;
  gidx at, first;
  idx n;
  uint64_t terms; /* written: sum of the hash terms (model/identity.h) of the rows as read */
  gidx bad;       /* written: the first row that is not finite when centred; -1: none */
};
int preprocess_run(struct preprocess *in, struct preprocess_job *job);

/* Set the shift that is subtracted from the summed columns: shift[p]. */
int preprocess_shift(struct preprocess *in, const real *shift);
/* Add rows 0 .. n - 1 of a buffer, whose global numbers begin at `first`, to the column sums.  They
 * must follow the rows of the last call, or begin a sum block.  ended <- the sums of the sum blocks
 * that end in these rows, as statistics_rows() gives them. */
int preprocess_sums(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                    real *ended);

#endif
