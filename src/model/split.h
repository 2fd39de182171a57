/* SPDX-License-Identifier: BSD-3-Clause
 * Held-out rows, which a fit never sees: whole windows of consecutive rows, drawn at random.  The
 * fitted and the held-out rows are sources, too.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Neighbouring rows of a text resemble each other, so single rows would not be unseen. */
#ifndef MODEL_SPLIT_H
#define MODEL_SPLIT_H

#include "base/memory.h"
#include "model/rows.h"

enum { SPLIT_WINDOW = 128 /* rows */ };

struct row_split {
  const struct row_source *rows; /* borrowed */
  gidx count;                    /* windows held out */
  gidx *window;                  /* [count] ascending */
  struct arena arena;
};

/* How to split: held-out rows are given, or are windows of `rows`. */
struct split_task {
  const struct row_source *rows;
  const struct row_source *held; /* held-out rows; NULL: windows of `rows` are held out */
  real share;                    /* of the windows, 0 .. 1 */
  gidx most;                     /* rows that are held out at most, about */
  uint64_t seed;
};
/* *fitted, *held <- the two kinds of rows, in their order; valid as long as *s is.  Each whole
 * window w is held out with probability `share`, by the draw (seed, a stream of its own, w).  If
 * share is above 0 and no window was drawn, the one with the smallest draw is held out.  An
 * incomplete window at the end never is.  Reading checks that values are finite, and names a row by
 * its number among all rows.  ERR_INPUT: there are no rows, or they have different columns; or
 * share is above 0, and nothing can be held out or nothing would be left.  Call split_free() in any
 * case. */
int split_open(struct row_split *s, const struct split_task *task, struct row_source *fitted,
               struct row_source *held);
void split_free(struct row_split *s);

/* Rows first .. first + n - 1 of a source, as a source; valid as long as *part is. */
struct row_part {
  const struct row_source *rows; /* borrowed */
  gidx first;
};
void part_source(struct row_part *part, const struct row_source *rows, gidx first, gidx n,
                 struct row_source *out);

#endif
