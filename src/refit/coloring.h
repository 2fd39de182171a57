/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring by all ranks and threads: the classes of classes_color() (N.6), bit for bit.
 *
 * Floor: refit.  Knows no files.
 *
 * Each rank has some of the rows.  Atoms go in lots of consecutive places of the greedy order.  Of
 * every atom of a lot each rank finds, by its own rows, the classes of earlier lots that it cannot
 * have, and the earlier atoms of the lot that share a row with it.  Both are sets of bits, and the
 * ranks' are united.  Then every rank gives the lot its classes, in order: the smallest one that is
 * neither in the atom's set nor given to an atom that it meets.  So an atom gets what the greedy
 * rule gives it by all atoms before it, however rows, lots and threads are divided. */
#ifndef REFIT_COLORING_H
#define REFIT_COLORING_H

#include "comm/comm.h"
#include "model/classes.h"

/* *out <- the classes of all ranks' rows, of which `own` are this one's; on every rank.
 * ERR_MEMORY; ERR_INPUT beyond 2^30 atoms, or 2^32 entries on a rank.  Collective; the same status
 * on every rank. */
int coloring_run(struct comm *c, const struct support_view *own, int threads, struct classes *out);

/* *bytes <- what that takes on a rank with so many entries in its rows, the result included: its
 * own allocation, run dry.  Fails as it would.  Not collective. */
int coloring_bytes(idx k, gidx entries, gidx *bytes);

#endif
