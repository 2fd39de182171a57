/* SPDX-License-Identifier: BSD-3-Clause
 * Warnings of what is computed rightly, and may mislead: doc/mislead.md explains each.
 *
 * Floor: model.  They follow from the inputs and from sums in the order of (N.0), so that they are
 * the same on any number of ranks.  Rank 0 logs; not collective. */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

#include "model/results.h"
#include "model/rows.h"

/* Rows that a dictionary is to be learned from: fewer than they have columns? */
void advice_shape(const struct row_source *rows);

/* Fewer atoms than a row is to have? */
void advice_top_s(idx top_s, idx k);

/* Are so many rows fewer than ten for each atom that is learned from them? */
void advice_rows(gidx rows, idx k);

/* Of atoms that were learned from rows: is more than a tenth of them in none? */
void advice_dead(gidx dead, idx k);

/* Of atoms that are trained: were more than a tenth in none of so many last rows? */
void advice_unused(gidx dead, idx k, gidx rows);

/* Of a fit that ended with its last sweep: did it still gain `gain` of explained variance, more
 * than the tolerance?  NaN: it is not known. */
void advice_converged(gidx sweeps, real gain, real tolerance);

/* Of rows that are described by the atoms of a file, whose rows had the median norm `fitted`, 0: it
 * does not say: is theirs another by a factor of three? */
void advice_scale(const struct metrics *m, real fitted, const char *atoms);

/* Is the explained variance of rows, such as "the unseen rows", below 0?  NaN: it is not known. */
void advice_explained(real explained, const char *what);

/* All that the metrics of rows say; `what` as above. */
void advice_metrics(const struct metrics *m, const char *what);

/* Of rows that no mean was subtracted from: has their own more than half of their squares, and is
 * less than 0.9 of them explained?  advice: what to do. */
void advice_mean(const struct metrics *m, const char *atoms, const char *advice);
/* The same by the first rows alone, where codes are not solved.  On rank 0, which reads them; what
 * cannot be read says nothing here. */
void advice_first_mean(const struct row_source *rows, const char *atoms, const char *advice);

#endif
