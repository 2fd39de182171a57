/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of a solve job: enough for its largest batches.
 *
 * Floor: solve; included by src/solve only.  solve.h has the forecasts. */
#ifndef SOLVE_LAYOUT_H
#define SOLVE_LAYOUT_H

#include "solve/solve_impl.h"

enum { MAX_SYSTEMS = 1 << 16 }; /* of a batch */

/* s->batch <- the batch that begins with system `first`, dealt to ranks.  Not collective. */
void solve_deal(struct solve *s, gidx first);

/* Allocate everything that is held while batches are solved; open device and workers.  ERR_MEMORY,
 * with the numbers and before anything is read: the rank's share of the free memory is too small,
 * or a rank's part of a batch is too large for one exchange.  Collective. */
int solve_open(struct solve *s);

/* Page-lock the arrays into which this rank reads systems, and to which a GPU writes steps; is_on =
 * 0: unlock them. */
void solve_pin(struct solve *s, int is_on);

#endif
