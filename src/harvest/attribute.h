/* SPDX-License-Identifier: BSD-3-Clause
 * Where the scores of routed atoms come from: for every row and atom of supports the positions and
 * heads of attention that contribute most (N.28).
 *
 * Floor: harvest.  Knows no files: captures, supports and atoms come from sources, lists go to a
 * sink.
 *
 * Each rank computes its partition of a block of queries, rank 0 writes the block.  Every rank
 * holds all atoms. */
#ifndef HARVEST_ATTRIBUTE_H
#define HARVEST_ATTRIBUTE_H

#include "comm/comm.h"
#include "device/device.h"
#include "model/attribution.h"
#include "model/capture.h"
#include "model/dictionary.h"
#include "model/identity.h"
#include "model/supports.h"

/* Rows first .. first + rows - 1, and their pairs, which are entries of the supports, in order. */
struct attributed_block {
  gidx first, rows, pairs;
  const gidx *sequence;       /* [rows] */
  const real *sum;            /* [pairs] all contributions: the score of the row as it is */
  const struct top_rows *top; /* of each pair the largest ones */
};
/* Where they go; blocks come in ascending order. */
struct attribute_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct attributed_block *block);
};

struct attribute_task {
  const struct capture_source *capture; /* borrowed, as are those below */
  const struct support_source *supports;
  const struct atom_source *atoms;
  const real *mean;       /* [p] that was subtracted from the rows; NULL: none was */
  struct identity inputs; /* that the supports name; 0: they do not say */
  idx compared;           /* so many atoms of a row, the first ones, have scores of round 1 */
  int nonnegative;        /* scores are positive parts */
  int normalize;          /* scale the atoms first */
  idx top;                /* contributions of a pair, at most MAX_TOP_ROWS */
  int threads;
  struct device *device;
  const struct attribute_sink *sink; /* of rank 0 */
  idx block;                         /* queries of all ranks at a time; 0: as many as pay */
};

struct attribute_result {
  gidx pairs, compared; /* and how many of them had a score to compare */
  gidx kept;            /* contributions in lists */
  /* Of all pairs, |sum of contributions - what it should be|, which is the routed score and the
   * mean's share where there is one, else the inner product of row and atom: the largest relative
   * to the sum of |row_c atom_c|, and how many are more than ATTRIBUTION_CLOSE of the value. */
  real error;
  gidx beyond;
  struct identity inputs;
  real *mean;           /* [k] inner products of mean and atoms: sum - mean is the centred score */
  uint64_t fingerprint; /* of all lists and sums */
  struct arena arena;
};
#define ATTRIBUTION_CLOSE 1e-5

/* Multiply-adds of attribution, about.  The queries of a rank at a time, of so many ranks, and the
 * bytes that a GPU has for them beside those of the walk: atoms and lists. */
double attribute_work(const struct attribute_task *task);
idx attribute_queries(const struct attribute_task *task, int ranks);
gidx attribute_bytes(const struct attribute_task *task, int ranks);

/* The bits of the lists do not depend on block, threads, device or ranks.  ERR_INPUT: rows, atoms
 * and supports do not belong together, which may be seen at the first row or the last; what
 * harvest_run() refuses.  ERR_MEMORY with the numbers, before any work.  Collective; the same
 * status on every rank.  attribute_free() follows. */
int attribute_run(struct comm *c, const struct attribute_task *task, struct attribute_result *r);
void attribute_free(struct attribute_result *r);

#endif
