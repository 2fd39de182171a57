/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a batch become codes, which every rank then has.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_BATCH_H
#define FIND_BATCH_H

#include "find/find_impl.h"

/* Use the dictionary of the finder.  Not collective. */
int batch_atoms(struct finder *f);

/* Read all rows of batch `number`.  Collective, as are the functions below. */
int batch_read(struct finder *f, gidx number);

/* Find the codes of the batch.  Atoms are chosen 1 + looks times, each time l0 per row on average.
 * rho > 0 draws codes to the means of their atoms.  threshold[1 + looks] <- the last score that
 * each choice takes. */
struct batch_choice {
  real l0, rho;
  int looks;
  float *threshold;
};
int batch_code(struct finder *f, const struct batch_choice *choice);

/* The same, but atoms are chosen block after block by given thresholds (N.59).  The first function
 * finds these, from the first rows of the batch. */
int batch_thresholds(struct finder *f, const struct batch_choice *choice);
int batch_code_nested(struct finder *f, const struct batch_choice *choice);

/* Send the entries of own rows, made by active_cut() and active_solve(), to all ranks; f->codes.n
 * is the number of rows of all ranks.  with_weights: also send the weights of the rows; they are
 * solved. */
int codes_exchange(struct finder *f, int with_weights);

#endif
