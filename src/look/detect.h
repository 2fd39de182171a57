/* SPDX-License-Identifier: BSD-3-Clause
 * Make a detector for each atom, from rows, the dictionary and the codes of the rows.  A detector
 * is a linear score of a row with a threshold.  Each atom also gets a threshold for its codes (N.36
 * to N.37f).
 *
 * Floor: look.  Knows no files.
 *
 * For the covariance, ranks take sum blocks of rows (base/sums.h) round robin.  Rank 0 computes the
 * inverse square root.  Then each rank makes the detectors of some atoms.  For the thresholds,
 * ranks take a sample of the sum blocks round robin.  The result has the same bits for any number
 * of ranks. */
#ifndef LOOK_DETECT_H
#define LOOK_DETECT_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/supports.h"

enum { DETECT_BLOCKS = 16 }; /* most sum blocks in the sample for thresholds */

struct detect_task {
  const struct row_source *rows;
  const struct atom_source *atoms;    /* d = 1 */
  const struct support_source *codes; /* of the same rows */
  const real *mean;                   /* [p] subtracted from the rows; NULL: none */
  int chosen; /* codes were chosen by thresholds (N.55), so an atom fires if its code is above 0 */
  int threads;
};

struct detect_result { /* the same on every rank */
  float *weights;      /* [k][p] */
  float *threshold;    /* [k] a detector fires if its score is above this; FLT_MAX: never */
  float *firing;       /* [k] an atom fires in a row if its code is above this */
  real *f1;            /* [k] F1 of "the detector fires" as a prediction of "the atom fires" */
  real mean_f1;        /* over the atoms that fire in the sample; NaN: none does */
  gidx rows, silent;   /* rows of the sample; atoms that fire in none of them */
  struct arena arena;
};

/* ERR_INPUT: atoms are frames of several vectors, there are too many columns or too few rows, or
 * rows, atoms and codes do not fit together.  Not collective. */
int detect_check(const struct detect_task *task);

/* The calls below need a task that has passed detect_check().
 *
 * *bytes <- the memory of this rank.  Only the shapes of the inputs are used.  Not collective. */
int detect_memory(const struct detect_task *task, struct comm *c, gidx *bytes);

/* ERR_MEMORY, with the numbers, if a rank has too little memory.  Collective. */
int detect_memory_check(const struct detect_task *task, struct comm *c);

/* ERR_INPUT: a row, detector or score is not finite, all rows are equal, an atom does not have norm
 * 1, or codes are invalid.  ERR_MEMORY.  Collective; the same status on every rank.  Call
 * detect_free() also after a failure. */
int detect_run(const struct detect_task *task, struct comm *c, struct detect_result *result);
void detect_free(struct detect_result *result);

#endif
