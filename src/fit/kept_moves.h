/* SPDX-License-Identifier: BSD-3-Clause
 * The sweeps of a refit on fixed supports (kept.h), and writing its result.
 *
 * Floor: fit.  Every function is collective; the same status on every rank. */
#ifndef FIT_KEPT_MOVES_H
#define FIT_KEPT_MOVES_H

#include "fit/kept.h"
#include "model/results.h"

/* Solve the codes of all rows for the current atoms.  Sets codes, metrics and w->contents. */
int kept_solve(struct kept *w);
/* Update all atoms once with the codes of kept_solve(), and round the atoms. */
int kept_move(struct kept *w);

/* Send supports, scores and codes to the sink, sum block after sum block.  Only the sink of rank 0
 * is used. */
int kept_write(struct kept *w, const struct support_sink *sink);

#endif
