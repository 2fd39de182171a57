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

/* Hold each whole window w out with probability `share`, 0 .. 1, by the draw (seed, its own stream,
 * w); where share > 0 and none was drawn, the one with the smallest draw.  The window at the end
 * that is not whole is never held out.  ERR_INPUT when share > 0 and nothing can be held out, or
 * nothing would be left. */
int split_draw(struct row_split *s, const struct row_source *rows, real share, uint64_t seed);
void split_free(struct row_split *s);

/* *fitted, *held <- the parts, in the order of the rows; valid as long as *s.  Reading checks that
 * values are finite, and names a row by its number among all. */
void split_sources(struct row_split *s, struct row_source *fitted, struct row_source *held);

/* Rows first .. first + rows - 1 of a source, as a source; valid as long as *part. */
struct row_part {
  const struct row_source *rows; /* borrowed */
  gidx first;
};
void part_source(struct row_part *part, const struct row_source *rows, gidx first, gidx n,
                 struct row_source *out);

#endif
