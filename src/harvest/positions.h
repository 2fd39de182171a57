/* SPDX-License-Identifier: BSD-3-Clause
 * A block of few queries over many positions: ranks share out the shards of positions, not the
 * queries (N.27).
 *
 * Floor: harvest, which alone includes it. */
#ifndef HARVEST_POSITIONS_H
#define HARVEST_POSITIONS_H

#include "harvest/harvest_impl.h"

/* Would ranks share out positions better than queries, and are there enough of them? */
int positions_pay(const struct capture_source *capture, int ranks);

/* What computing blocks of at most h->block queries so takes, all of which each rank has. */
int positions_alloc(struct harvest *h);
void positions_free(struct harvest *h);
/* *n <- so many of the queries from `first` on that their parts have room; 1 at least. */
int positions_count(struct harvest *h, gidx first, gidx *n);
/* Compute queries first .. first + n - 1: rows and lse on rank 0; *key <- the row of a failure.
 * Collective, though each rank returns a status of its own. */
int positions_run(struct harvest *h, gidx first, gidx n, gidx *key);

#endif
