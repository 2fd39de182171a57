/* SPDX-License-Identifier: BSD-3-Clause
 * Rows, a dictionary and the codes of the rows -> a detector and a threshold for each atom, and a
 * threshold of its codes.
 *
 * Floor: look.  Knows no files.
 *
 * Ranks take sum blocks of rows in turn for the covariance, then atoms, then some of the sum blocks
 * again for the thresholds; rank 0 finds the root.  The result has the same bits on any number of
 * them. */
#ifndef LOOK_DETECT_H
#define LOOK_DETECT_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/supports.h"

enum { DETECT_BLOCKS = 16 }; /* sum blocks by which thresholds are chosen, at most */

struct detect_task {
  const struct row_source *rows;
  const struct atom_source *atoms;    /* d = 1 */
  const struct support_source *codes; /* of as many rows */
  const real *mean;                   /* [p], subtracted from the rows; NULL: nothing is */
  int chosen; /* codes were chosen by thresholds (N.55): any code above 0 fires */
  int threads;
};

struct detect_result { /* the same on every rank */
  float *weights;      /* [k][p] */
  float *threshold;    /* [k]; a row fires above it, FLT_MAX: never */
  float *firing;       /* [k]; a code fires above it */
  real *f1;            /* [k] of "the detector fires" for "the code fires" */
  real mean_f1;        /* over the atoms that have a code */
  gidx rows, silent;   /* by which thresholds were chosen; atoms without a code in them */
  struct arena arena;
};

/* ERR_INPUT: frames, or rows, atoms and codes that do not fit each other.  Not collective. */
int detect_check(const struct detect_task *task);

/* *bytes <- what this rank takes for a task that passed, of which only shapes are used.  Not
 * collective. */
int detect_memory(const struct detect_task *task, struct comm *c, gidx *bytes);

/* For such a task: ERR_MEMORY, with the numbers, where a rank has no room for it.  Collective. */
int detect_memory_check(const struct detect_task *task, struct comm *c);

/* For a task that passed.  ERR_INPUT: rows that are not finite or all the same, or codes that are
 * not as they should be; ERR_MEMORY.  Collective; the same status on every rank.  detect_free()
 * follows also when it fails. */
int detect_run(const struct detect_task *task, struct comm *c, struct detect_result *result);
void detect_free(struct detect_result *result);

#endif
