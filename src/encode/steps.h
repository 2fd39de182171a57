/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of a block: what it asks of the device and of other ranks.
 *
 * Floor: encode.  All but one are collective, and count in the phases of the result.  What they
 * return is common to the group, or ends the job; what failed on one rank alone is PENDING in the
 * group (comm/failure.h). */
#ifndef ENCODE_STEPS_H
#define ENCODE_STEPS_H

#include "encode/encode_impl.h"

/* Give every rank all rows of the block, or all residuals and, with_chosen, the supports so far,
 * whose atoms the next round excludes. */
int step_allgather(struct encode *e, struct block_in_flight *b, struct buffer *rows,
                   int with_chosen);

/* Make the lists of all rows of the block over this rank's tiles.  ERR_INPUT names the lowest row
 * and atom whose score is not finite. */
int step_route(struct encode *e, struct block_in_flight *b);

/* Send each row's list to the rank of the row, where the lists wait to be merged. */
int step_alltoallv(struct encode *e, struct block_in_flight *b);

/* Fetch the atoms that entries_begin .. entries_end - 1 of this rank's supports name. */
int step_fetch(struct encode *e, struct block_in_flight *b);

/* Solve the codes of this rank's rows on their first entries_end atoms.  The last round leaves
 * codes and quality on the host, the others the residual on the device. */
void step_codes(struct encode *e, struct block_in_flight *b, int last);

/* e->counts <- the chains that each rank has of the sum blocks that end in a turn of n rows, and
 * e->ended_blocks <- how many do in each group.  Not collective. */
int step_ended_count(struct encode *e, gidx first, idx n);

/* Supports, scores and codes to who writes them, and what metrics need to rank 0. */
int step_gather(struct encode *e, struct block_in_flight *b);

#endif
