/* SPDX-License-Identifier: BSD-3-Clause
 * This rank's rows of the next part of a fit, read while the present part is used.
 *
 * Floor: fit; included by src/fit only.  Not collective.
 *
 * Parts take turns in two arrays.  Reading ahead cannot fail: a part that it could not read is read
 * again when it is used, and this second reading reports the error.  Between part_ahead_begin() and
 * part_ahead_pause(), and after part_ahead_go(), HDF5 may be in use (base/worker.h). */
#ifndef FIT_AHEAD_H
#define FIT_AHEAD_H

#include "base/memory.h"
#include "base/worker.h"
#include "comm/comm.h"
#include "model/rows.h"
#include "model/split.h"
#include "refit/state.h"

struct part_ahead {
  struct worker worker;
  struct row_part part;
  struct row_source rows; /* of the next part */
  const real *mean;
  /* number: the number of the next part; -1: none.  This rank has n rows of that part, from row
   * `first` of the part on; `done` of these rows are read. */
  gidx number, first, n, done;
  float *x[2];    /* [most][p] the next part, and the present one */
  uint64_t terms; /* sum of the hash terms of the next part's rows, so far */
  _Atomic int pauses;
  struct arena arena;
};

/* The largest number of rows that this rank has of any part.  The last part has `last` rows; each
 * part before it has n. */
gidx part_ahead_most(gidx n, gidx last, const struct comm *c);

/* Open for parts of which this rank has at most `most` rows of p columns.  part_ahead_close() is
 * safe on a zeroed struct; it waits for a piece that is being read. */
int part_ahead_open(struct part_ahead *a, gidx most, idx p, const real *mean);
void part_ahead_close(struct part_ahead *a);

/* Begin to read part `number`, n rows of `all` from `first` on.  This and the functions below do
 * nothing if *a is not open. */
void part_ahead_begin(struct part_ahead *a, const struct row_source *all, gidx number, gidx first,
                      gidx n, const struct comm *c);

/* part_ahead_pause() waits for the piece that is being read, and lets no other begin.
 * part_ahead_go() lets the reading go on. */
void part_ahead_pause(struct part_ahead *a);
void part_ahead_go(struct part_ahead *a);

/* task->x <- the array for own rows of part `number`.  task->read <- the sum of the hash terms of
 * these rows if all of them were read ahead; otherwise NULL. */
void part_ahead_take(struct part_ahead *a, gidx number, struct refit_task *task);

#endif
