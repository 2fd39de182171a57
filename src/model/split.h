/* SPDX-License-Identifier: BSD-3-Clause
 * Held-out rows, which a fit never sees: whole windows of consecutive rows, drawn at random.  The
 * fitted and the held-out rows are sources, too.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Neighbouring rows of a text resemble each other.  So if single rows were held out, the fit would
 * see rows like them. */
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
  gidx most;                     /* approximate limit of the number of held-out rows */
  uint64_t seed;
};
/* *fitted, *held <- sources of the fitted and of the held-out rows, in the order of their source;
 * valid as long as *s is.  If task->held is given, *held has its rows, and all of task->rows are
 * fitted.  Otherwise windows of task->rows are held out.  Each whole window w is held out with
 * probability `share`, or less if that gives more than `most` rows.  Its random number is a
 * function of (seed, a stream for this purpose, w).  If share is above 0 and no window was drawn,
 * the window with the smallest random number is held out.  An incomplete window at the end is
 * always fitted.  Reading checks that values are finite, and names a row by its number among all
 * rows.  ERR_INPUT: there are no rows, or the two sources differ in their numbers of columns; or
 * share is above 0, and no window can be held out or no row would be fitted.  Call split_free() in
 * any case. */
int split_open(struct row_split *s, const struct split_task *task, struct row_source *fitted,
               struct row_source *held);
void split_free(struct row_split *s);

/* *out <- a source of rows first .. first + n - 1 of `rows`; valid as long as *part is. */
struct row_part {
  const struct row_source *rows; /* borrowed */
  gidx first;
};
void part_source(struct row_part *part, const struct row_source *rows, gidx first, gidx n,
                 struct row_source *out);

#endif
