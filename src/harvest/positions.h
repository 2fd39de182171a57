/* SPDX-License-Identifier: BSD-3-Clause
 * A block of few queries with many positions: ranks divide the shards of positions, not the queries
 * (N.27).
 *
 * Floor: harvest, which alone includes it. */
#ifndef HARVEST_POSITIONS_H
#define HARVEST_POSITIONS_H

#include "harvest/harvest_impl.h"

/* Does it pay to divide positions instead of queries? */
int positions_pay(const struct capture_source *capture, int ranks);

/* Allocate for blocks of at most h->block queries; each rank has all queries of a block. */
int positions_alloc(struct harvest *h);
void positions_free(struct harvest *h);
/* *n <- the number of queries from `first` on whose parts fit in memory; at least 1. */
int positions_count(struct harvest *h, gidx first, gidx *n);
/* Compute queries first .. first + n - 1: rows and lse on rank 0; *key <- the row of a failure.
 * Collective, but each rank returns a status of its own. */
int positions_run(struct harvest *h, gidx first, gidx n, gidx *key);

#endif
