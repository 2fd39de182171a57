/* SPDX-License-Identifier: BSD-3-Clause
 * Sweeps of a refit on supports that stay (kept.h): codes, moves, and the way to files.
 *
 * Floor: fit.  Every function is collective; the same status on every rank. */
#ifndef FIT_KEPT_MOVES_H
#define FIT_KEPT_MOVES_H

#include "fit/kept.h"
#include "model/results.h"

/* Solve the codes of all rows for the atoms: codes, metrics and w->contents are those. */
int kept_solve(struct kept *w);
/* One update of all atoms by those codes, rounded. */
int kept_move(struct kept *w);

/* Hand supports, scores and codes to the sink (used on rank 0), block after block. */
int kept_write(struct kept *w, const struct support_sink *sink);

#endif
