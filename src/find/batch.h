/* SPDX-License-Identifier: BSD-3-Clause
 * Find the codes of the rows of a batch, and send them to all ranks.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_BATCH_H
#define FIND_BATCH_H

#include "find/find_impl.h"

/* Use the current atoms and means of the finder for the next batches.  Not collective. */
int batch_atoms(struct finder *f);

/* Read all rows of batch `number`.  Collective, as are the functions below. */
int batch_read(struct finder *f, gidx number);

/* Find the codes of the batch, and send them to all ranks.  Atoms are chosen 1 + looks times.  Each
 * choice has l0 atoms per row on average, and replaces the choice before it.  The penalty rho > 0
 * pulls each code towards the mean code of its atom.  threshold[1 + looks] <- the lowest score of
 * each choice. */
struct batch_choice {
  real l0, rho;
  int looks;
  float *threshold;
};
int batch_code(struct finder *f, const struct batch_choice *choice);

/* batch_code_nested() does the same with given thresholds, which choose the atoms of one block
 * after another (N.59).  batch_thresholds() finds these thresholds from the first rows of the
 * batch. */
int batch_thresholds(struct finder *f, const struct batch_choice *choice);
int batch_code_nested(struct finder *f, const struct batch_choice *choice);

/* Send the entries of this rank's rows to all ranks.  They are in f->active, from active_cut(),
 * active_solve() or active_nested().  f->codes.n is the number of rows of all ranks.  with_weights:
 * also compute the weights of this rank's rows from f->squares, and send them. */
int codes_exchange(struct finder *f, int with_weights);

#endif
