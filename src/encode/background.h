/* SPDX-License-Identifier: BSD-3-Clause
 * The background worker of an encode job, which computes on the host while a block is routed.
 *
 * Floor: encode; included by src/encode only.  Not collective. */
#ifndef ENCODE_BACKGROUND_H
#define ENCODE_BACKGROUND_H

#include "model/results.h"

struct block_in_flight;
struct encode;

/* What the background worker does while a block is routed: merge the lists of the other block,
 * count the results of the block that was finished, sum the columns of the rows being routed. */
struct background_job {
  struct encode *e;
  struct block_in_flight *merge;  /* NULL: none */
  struct block_in_flight *summed; /* whose rows are; NULL: none */
  struct support_block counted;   /* this rank's share of a block; n = 0: nothing */
  idx qualities;                  /* of all rows of that turn, rank 0 */
};

/* Start the background worker on the lists of `other`, if these wait to be merged, and on what else
 * stands in e->background_job; until it is waited for, the main thread may route and nothing
 * else. */
int background_start(struct encode *e, struct block_in_flight *other);
int background_wait(struct encode *e);

/* Add a block, this rank's share, to density and fingerprint, and on rank 0 the qualities of all
 * rows of its turn. */
void results_count(struct encode *e, const struct support_block *b, idx qualities);

#endif
