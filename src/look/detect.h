/* SPDX-License-Identifier: BSD-3-Clause
 * From rows, a dictionary and the codes of the rows to detectors: for each atom a linear detector
 * with a threshold, and a threshold of the atom's codes.
 *
 * Floor: look.  Knows no files.
 *
 * Ranks take sum blocks of rows (base/sums.h) round robin for the covariance; then they divide the
 * atoms; then some of the sum blocks again, for the thresholds.  Rank 0 computes the root of the
 * covariance.  The result has the same bits for any number of ranks. */
#ifndef LOOK_DETECT_H
#define LOOK_DETECT_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/supports.h"

enum { DETECT_BLOCKS = 16 }; /* most sum blocks that thresholds are chosen by */

struct detect_task {
  const struct row_source *rows;
  const struct atom_source *atoms;    /* d = 1 */
  const struct support_source *codes; /* of the same rows */
  const real *mean;                   /* [p] subtracted from the rows; NULL: none */
  int chosen; /* codes were chosen by thresholds (N.55), so any code above 0 means firing */
  int threads;
};

struct detect_result { /* the same on every rank */
  float *weights;      /* [k][p] */
  float *threshold;    /* [k]; a row fires if its score is above; FLT_MAX: none does */
  float *firing;       /* [k]; an atom fires if its code is above */
  real *f1;            /* [k] F1 of "the detector fires" as a prediction of "the code fires" */
  real mean_f1;        /* over the atoms that have codes */
  gidx rows, silent;   /* rows that thresholds were chosen by; atoms without a code in these */
  struct arena arena;
};

/* ERR_INPUT: frames; or rows, atoms and codes that do not fit together.  Not collective. */
int detect_check(const struct detect_task *task);

/* *bytes <- the memory of this rank, for a task that has passed detect_check(); only shapes are
 * used.  Not collective. */
int detect_memory(const struct detect_task *task, struct comm *c, gidx *bytes);

/* For such a task: ERR_MEMORY, with the numbers, if a rank has too little memory.  Collective. */
int detect_memory_check(const struct detect_task *task, struct comm *c);

/* For such a task.  ERR_INPUT: rows that are not finite or all equal, or invalid codes; ERR_MEMORY.
 * Collective; the same status on every rank.  Call detect_free() also when it fails. */
int detect_run(const struct detect_task *task, struct comm *c, struct detect_result *result);
void detect_free(struct detect_result *result);

#endif
