/* SPDX-License-Identifier: BSD-3-Clause
 * The background worker of an encode job, which computes on the host while a block is routed.
 *
 * Floor: encode; included by src/encode only.  Not collective. */
#ifndef ENCODE_BACKGROUND_H
#define ENCODE_BACKGROUND_H

#include "model/results.h"

struct block_in_flight;
struct encode;

/* The work of the background worker while a block is routed.  It merges the lists of the other
 * block in flight, counts the results of the finished block, and sums the columns of the routed
 * rows. */
struct background_job {
  struct encode *e;
  struct block_in_flight *merge;  /* NULL: none */
  struct block_in_flight *summed; /* block whose rows are summed; NULL: none */
  struct support_block counted;   /* this rank's share of the finished block; n = 0: nothing */
  idx qualities;                  /* rank 0: rows of the finished superblock, whose quality is to be
                                   * added; other ranks: 0 */
};

/* Start the background worker on the lists of `other`, if they wait to be merged, and on
 * e->background_job.  Until background_wait() the main thread may only route. */
int background_start(struct encode *e, struct block_in_flight *other);
int background_wait(struct encode *e);

/* Add this rank's share of a block to density and fingerprint.  On rank 0 also add the qualities of
 * all rows of its superblock. */
void results_count(struct encode *e, const struct support_block *b, idx qualities);

#endif
