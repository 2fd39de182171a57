/* SPDX-License-Identifier: BSD-3-Clause
 * Rows of a batch become codes, which every rank then has.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_BATCH_H
#define FIND_BATCH_H

#include "find/find_impl.h"

/* The dictionary at hand is that of the finder.  Not collective. */
int batch_atoms(struct finder *f);

/* All rows of batch `number`.  Collective, as are the next. */
int batch_read(struct finder *f, gidx number);

/* Its codes, chosen 1 + looks times, each time l0 a row; they are drawn to the means where rho > 0.
 * threshold[1 + looks] <- the last score of each choice. */
struct batch_choice {
  real l0, rho;
  int looks;
  float *threshold;
};
int batch_code(struct finder *f, const struct batch_choice *choice);

/* The same, chosen block after block by thresholds that are known (N.59); those are found by the
 * first rows of the batch at hand. */
int batch_thresholds(struct finder *f, const struct batch_choice *choice);
int batch_code_nested(struct finder *f, const struct batch_choice *choice);

/* What active_cut() and active_solve() found of own rows, of f->codes.n that ranks share out, to
 * all; the weights of the rows too, when they were solved. */
int codes_exchange(struct finder *f, int with_weights);

#endif
