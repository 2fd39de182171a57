/* SPDX-License-Identifier: BSD-3-Clause
 * Rows that a fit never sees: whole windows of consecutive rows, drawn at random, are held out of a
 * source, and the two parts are sources again.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Neighbours of a text resemble each other, so single rows would not be unseen. */
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

/* What is fitted, and what judges: rows that are given for that, or windows held out of `rows`. */
struct split_task {
  const struct row_source *rows;
  const struct row_source *held; /* NULL: windows are held out */
  real share;                    /* of the windows, 0 .. 1 */
  gidx most;                     /* rows, about, that are held out at most */
  uint64_t seed;
};
/* *fitted, *held <- the rows of both, in the order of theirs; valid as long as *s.  Each whole
 * window w is held out with probability `share`, by the draw (seed, its own stream, w); where share
 * is above 0 and none was drawn, the one with the smallest draw.  The window at the end that is not
 * whole never is.  Reading checks that values are finite, and names a row by its number among all.
 * ERR_INPUT: there are no rows, or of other columns; share is above 0 and nothing can be held out,
 * or nothing would be left.  split_free() follows also then. */
int split_open(struct row_split *s, const struct split_task *task, struct row_source *fitted,
               struct row_source *held);
void split_free(struct row_split *s);

/* Rows first .. first + rows - 1 of a source, as a source; valid as long as *part. */
struct row_part {
  const struct row_source *rows; /* borrowed */
  gidx first;
};
void part_source(struct row_part *part, const struct row_source *rows, gidx first, gidx n,
                 struct row_source *out);

#endif
