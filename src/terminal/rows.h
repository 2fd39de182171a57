/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0's stream of rows, batch after batch, and the matrix S that is formed from it.
 *
 * Floor: terminal; included by src/terminal only.  Not collective: rank 0 alone works. */
#ifndef TERMINAL_ROWS_H
#define TERMINAL_ROWS_H

#include "base/memory.h"
#include "base/worker.h"
#include "device/joint.h"

struct terminal;

struct terminal_rows {
  const struct terminal *w;
  struct joint_work work;
  struct worker worker;
  struct joint_rows batch; /* the last one read */
  gidx next;               /* first row of the next batch */
  idx capacity;            /* largest number of rows of a batch */
  float *x, *codes;
  gidx *start;
  idx *list;
  struct arena arena;
};

/* Open the stream and its joint work.  With the dense work, which is open already, they take at
 * most `workspace` bytes of host memory. */
int terminal_rows_open(struct terminal_rows *rows, struct terminal *w, gidx workspace);
/* Allocate the arrays that rows are read into; a dry arena only counts them.  terminal_rows_open()
 * calls it. */
int terminal_rows_alloc(struct terminal_rows *rows, const struct terminal *w);
void terminal_rows_close(struct terminal_rows *rows);

/* Read the next batch, make the matrices Y of its rows (device/joint.h), and add it to the sums;
 * batch.n is 0 after the last row. */
int terminal_rows_next(struct terminal_rows *rows, struct joint_sums *sums);

/* Form S, and the sums over rows. */
int terminal_assemble(struct terminal *w, struct joint_sums *sums);
/* Bytes of S. */
gidx terminal_schur_bytes(const struct terminal *w);

#endif
