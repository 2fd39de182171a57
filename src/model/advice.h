/* SPDX-License-Identifier: BSD-3-Clause
 * Warnings about results that are right but may mislead; doc/mislead.md explains each.
 *
 * Floor: model.  Warnings follow from the inputs and from sums in the order of (N.0), so they are
 * the same for any number of ranks.  Rank 0 logs; not collective. */
#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

#include "model/results.h"
#include "model/rows.h"

/* Warn if a dictionary is learned from fewer rows than columns. */
void advice_shape(const struct row_source *rows);

/* Warn if there are fewer atoms (k) than the atoms per row that were asked for (top_s). */
void advice_top_s(idx top_s, idx k);

/* Warn if there are fewer than ten rows per learned atom. */
void advice_rows(gidx rows, idx k);

/* Warn if more than a tenth of the learned atoms are used by no row. */
void advice_dead(gidx dead, idx k);

/* Warn if more than a tenth of the trained atoms were used by none of the last `rows` rows. */
void advice_unused(gidx dead, idx k, gidx rows);

/* For a fit that did all its sweeps.  Warn if `gain`, the gain in explained variance of its last
 * five passes over the rows, is larger than the tolerance.  NaN or infinity: the gain is not known.
 * No warning if the tolerance is 0. */
void advice_converged(gidx sweeps, real gain, real tolerance);

/* Warn if the median norm of the rows differs by a factor of three or more from `fitted`.  fitted:
 * the median norm of the rows that the atoms were fitted to; 0: it is not known.  With fewer than
 * ten rows there is no warning. */
void advice_scale(const struct metrics *m, real fitted, const char *atoms);

/* Warn if the explained variance of rows is below 0.  what: the rows, such as "the unseen rows".
 * NaN: the explained variance is not known. */
void advice_explained(real explained, const char *what);

/* Warnings that need only the metrics of rows: massive rows, explained variance, equal rows and
 * dense atoms; `what` as above. */
void advice_metrics(const struct metrics *m, const char *what);

/* For rows from which no mean was subtracted.  Warn if their mean accounts for more than half of
 * the sum of their squares, and the explained variance is at most 0.9 or not known.  advice: what
 * to do. */
void advice_mean(const struct metrics *m, const char *atoms, const char *advice);
/* The same, computed from the first SHIFT_ROWS rows alone, for jobs that do not solve codes.  It
 * reads these rows; a failure to read them is ignored.  Called on rank 0 only. */
void advice_first_mean(const struct row_source *rows, const char *atoms, const char *advice);

#endif
