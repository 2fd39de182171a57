/* SPDX-License-Identifier: BSD-3-Clause
 * supports.h5 written by all ranks.  Each rank writes the chunks of its rows at the places that
 * h5/slabs.h computes, and rank 0 gets their hashes.
 *
 * Floor: io.  Collective; one status on all ranks. */
#ifndef IO_SUPPORTS_RANKS_H
#define IO_SUPPORTS_RANKS_H

#include "comm/comm.h"
#include "io/supports.h"

/* Begin a file of this shape that rank 0 has created, and that has no rows yet.  *is <- 1: each
 * rank writes rows of its own to the sink of its *f, in ascending order: whole sum blocks (4,096
 * rows), or the last rows of the file.  *is <- 0: rank 0 alone writes.  The reason is that there is
 * one rank, that chunks of this shape have no fixed places, that the file system may write back a
 * memory page with chunks of two ranks (logged), or that a rank cannot see the file (logged). */
int supports_ranks_begin(struct supports_output *f, struct comm *c,
                         const struct supports_shape *shape, idx rounds, int *is);

/* Check rows first .. end - 1, which were written since the last call.  all: 1 if each rank wrote
 * some of these rows, 0 if rank 0 wrote them alone, into chunks with fixed places (h5/placed.h).
 * Each rank that wrote syncs its rows, reads them again, and checks them as `verify` does.  With
 * `all`, every rank then gets the hashes of all these chunks.  Rank 0 adds the counts to its counts
 * of earlier rows. */
int supports_ranks_check(struct supports_output *f, struct comm *c, int all, gidx first, gidx end);
/* Add counts of rows that were checked.  Not collective. */
int supports_counts_add(struct supports_output *f, const struct support_counts *more);
/* Call this after this rank has written the `rows` rows before row `end` of a file whose chunks
 * have fixed places.  From time to time it gives the unchecked rows to a thread, so that few are
 * left to check at the end.  It may return a failure that belongs to rows of an earlier call.  Not
 * collective. */
int supports_placed_wrote(struct supports_output *f, gidx rows, gidx end);
/* Wait until the checking thread no longer reads the file; call it before closing.  Safe on a
 * zeroed struct.  Not collective. */
void supports_placed_rest(struct supports_output *f);
/* Give the chunks of an open file fixed places, as supports_ranks_begin() does.  Not collective. */
int supports_placed_begin(struct supports_output *f, idx rounds);

/* End the joint writing of the first `rows` rows, and check those that are unchecked.  Afterwards
 * rank 0 has the file as if it had written all rows, and skips them when it verifies the file; the
 * other ranks have closed it. */
int supports_ranks_end(struct supports_output *f, struct comm *c, gidx rows);

#endif
