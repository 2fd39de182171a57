/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block that use the device and other ranks.
 *
 * Floor: encode.  All are collective in the group unless they say otherwise, and are timed as
 * phases of the result.  A status that they return is common to the group, or ends the job.  A
 * failure on one rank alone is PENDING in the group (comm/failure.h). */
#ifndef ENCODE_STEPS_H
#define ENCODE_STEPS_H

#include "encode/encode_impl.h"

/* Give every rank all rows of the block, or all residuals.  with_chosen: also the supports so far,
 * whose atoms the next round excludes. */
int step_allgather(struct encode *e, struct block_in_flight *b, struct buffer *rows,
                   int with_chosen);

/* Make the lists of all rows of the block on this rank's tiles.  ERR_INPUT names the lowest row and
 * atom whose score is not finite. */
int step_route(struct encode *e, struct block_in_flight *b);

/* Send each row's list to the rank that has the row, where it waits to be merged. */
int step_alltoallv(struct encode *e, struct block_in_flight *b);

/* Fetch the atoms that entries_begin .. entries_end - 1 of this rank's supports name. */
int step_fetch(struct encode *e, struct block_in_flight *b);

/* Solve the codes of this rank's rows on their first entries_end atoms.  After the last round codes
 * and quality are on the host.  After an earlier round the residual is on the device. */
void step_codes(struct encode *e, struct block_in_flight *b, int last);

/* For the sum blocks that end in a superblock of n rows: e->counts <- the number of chain values
 * that each rank sends; e->ended_blocks <- the number of these sum blocks in each group.  Not
 * collective. */
int step_ended_count(struct encode *e, gidx first, idx n);

/* Send supports, scores and codes to the ranks that write them, and the data for the metrics to
 * rank 0. */
int step_gather(struct encode *e, struct block_in_flight *b);

#endif
