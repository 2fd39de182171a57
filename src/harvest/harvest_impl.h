/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of a rank's partition of the queries, which harvest writes and attribute takes apart.
 *
 * Floor: harvest, which alone includes it. */
#ifndef HARVEST_HARVEST_IMPL_H
#define HARVEST_HARVEST_IMPL_H

#include "harvest/harvest.h"
#include "harvest/resident_capture.h"
#include "harvest/pieces.h"

struct harvest {
  const struct harvest_task *task;
  struct comm *c; /* NULL: this rank alone reads rows */
  struct arena arena;
  idx block, partition; /* queries of all ranks, and of one, at a time */
  float *q;             /* [partition][heads][d] */
  gidx *from, *end;     /* [partition] */
  float *k, *v;         /* of a shard */
  float *m, *l, *acc;   /* [partition] sums (device/attention.h) */
  float *rows, *lse;    /* [partition] results */
  float *all, *all_lse; /* [block], on rank 0 */
  idx *counts;          /* [size] */
  /* Of a GPU that has all cells, and keeps the sums to itself; or that has them piece by piece;
   * NULL where it is neither, as on a CPU. */
  struct resident_capture *resident;
  struct pieces *pieces;
  struct resident_capture_atoms atoms; /* of attribute, else none */
  struct positions *positions;         /* where ranks share out positions (positions.h) */
  double pairs;
  gidx blind;
  uint64_t fingerprint;
};

/* The queries of a block of all ranks: enough for each, if so many are there. */
idx harvest_block(const struct harvest_task *task, int ranks);
/* Allocate what a rank needs for h->partition queries; harvest_partition_free() follows also when
 * this fails. */
int harvest_partition_alloc(struct harvest *h);
void harvest_partition_free(struct harvest *h);
/* The sequence that has a query. */
gidx harvest_sequence(const struct capture_source *s, gidx query);
/* What queries first .. first + n - 1 of all, which are of one sequence, see together: *least ..
 * *most - 1, nothing where least >= most. */
void harvest_seen(const struct capture_source *s, gidx sequence, gidx first, gidx n, gidx *least,
                  gidx *most);
/* from, end <- what each of queries first .. first + n - 1 sees. */
void harvest_seen_all(struct harvest *h, gidx first, gidx n);
/* rows, lse <- results of m, l and acc; ERR_INPUT names a row that is not finite. */
int harvest_partition_finish(struct harvest *h, gidx first, idx count, gidx *key);
/* Compute queries first .. first + count - 1: all of q, from, end, m, l, rows and lse; *key <- the
 * row of a failure.  Not collective. */
int harvest_partition_run(struct harvest *h, gidx first, idx count, gidx *key);

#endif
