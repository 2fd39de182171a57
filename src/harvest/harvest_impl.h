/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a rank's share of the queries, which harvest writes, and attribute explains.
 *
 * Floor: harvest, which alone includes it. */
#ifndef HARVEST_HARVEST_IMPL_H
#define HARVEST_HARVEST_IMPL_H

#include "harvest/harvest.h"
#include "harvest/resident_capture.h"
#include "harvest/pieces.h"

struct harvest {
  const struct harvest_task *task;
  struct comm *c; /* NULL: only this rank reads rows */
  struct arena arena;
  idx block, partition; /* queries at a time: of all ranks, of one rank */
  float *q;             /* [partition][heads][d] */
  gidx *from, *end;     /* [partition] */
  float *k, *v;         /* of a shard of positions */
  float *m, *l, *acc;   /* [partition] sums (device/attention.h) */
  float *rows, *lse;    /* [partition] results */
  float *all, *all_lse; /* [block], on rank 0 */
  idx *counts;          /* [size] */
  /* resident: for a GPU that has all keys and values, and keeps the sums.  pieces: for a GPU that
   * gets keys and values in pieces.  The other one is NULL; on a CPU both are. */
  struct resident_capture *resident;
  struct pieces *pieces;
  struct resident_capture_atoms atoms; /* for attribute; otherwise none */
  struct positions *positions;         /* if ranks divide positions (positions.h) */
  double pairs;
  gidx blind;
  uint64_t fingerprint;
};

/* The number of queries of a block: enough to keep each rank busy, if the capture has so many. */
idx harvest_block(const struct harvest_task *task, int ranks);
/* Allocate what a rank needs for h->partition queries.  Call harvest_partition_free() also when
 * this fails. */
int harvest_partition_alloc(struct harvest *h);
void harvest_partition_free(struct harvest *h);
/* The sequence that has a query. */
gidx harvest_sequence(const struct capture_source *s, gidx query);
/* *least .. *most - 1 <- the smallest range with every position that at least one of queries first
 * .. first + n - 1 sees; none if *least >= *most.  The queries must be of one sequence; first is a
 * number among all queries. */
void harvest_seen(const struct capture_source *s, gidx sequence, gidx first, gidx n, gidx *least,
                  gidx *most);
/* from, end <- the positions that each of queries first .. first + n - 1 sees. */
void harvest_seen_all(struct harvest *h, gidx first, gidx n);
/* rows, lse <- the results of m, l and acc; ERR_INPUT names a row that is not finite. */
int harvest_partition_finish(struct harvest *h, gidx first, idx count, gidx *key);
/* Compute q, from, end, rows and lse of queries first .. first + count - 1; also m and l, if
 * h->resident is NULL.  *key <- the row of a failure.  Not collective. */
int harvest_partition_run(struct harvest *h, gidx first, idx count, gidx *key);

#endif
