/* SPDX-License-Identifier: BSD-3-Clause
 * Where the scores of routed atoms come from: for every row and atom of supports, the positions and
 * heads of attention that contribute most (N.28).
 *
 * Floor: harvest.  Knows no files: captures, supports and atoms come from sources, lists go to a
 * sink.
 *
 * Each rank computes its share of a block of queries; rank 0 writes the block.  Every rank holds
 * all atoms. */
#ifndef HARVEST_ATTRIBUTE_H
#define HARVEST_ATTRIBUTE_H

#include "comm/comm.h"
#include "device/device.h"
#include "model/attribution.h"
#include "model/capture.h"
#include "model/dictionary.h"
#include "model/identity.h"
#include "model/supports.h"

/* Rows first .. first + rows - 1, and their (row, atom) pairs: the entries of the supports, in
 * order. */
struct attributed_block {
  gidx first, rows, pairs;
  const gidx *sequence;       /* [rows] */
  const real *sum;            /* [pairs] the sum of all contributions: the score of the uncentred
                               * row */
  const struct top_rows *top; /* the largest contributions of each pair */
};
/* Takes blocks in ascending order. */
struct attribute_sink {
  void *self; /* borrowed */
  int (*write)(void *self, const struct attributed_block *block);
};

struct attribute_task {
  const struct capture_source *capture; /* all pointers are borrowed */
  const struct support_source *supports;
  const struct atom_source *atoms;
  const real *mean;       /* [p] that was subtracted from the rows; NULL: none */
  struct identity inputs; /* inputs that the supports name; 0: not named */
  idx compared;           /* the first `compared` atoms of a row have scores of round 1 */
  int nonnegative;        /* routed scores are positive parts */
  int normalize;          /* scale the atoms first */
  idx top;                /* contributions per pair, at most MAX_TOP_ROWS */
  int threads;
  struct device *device;
  const struct attribute_sink *sink; /* on rank 0 */
  idx block;                         /* queries of all ranks at a time; 0: chosen */
};

struct attribute_result {
  gidx pairs, compared; /* all pairs; the pairs whose sum is compared with a score */
  gidx kept;            /* contributions in lists */
  /* Over all pairs, |sum of contributions - expected value|.  For a compared pair the expected
   * value is the routed score plus mean[atom]; if that score is the positive part 0, a lower sum
   * counts as equal.  For other pairs it is the inner product of row and atom.  error: the largest
   * difference, relative to the sum of |row_c atom_c|, to which a compared pair adds |score| and
   * |mean[atom]|.  beyond: in how many pairs the difference is more than ATTRIBUTION_CLOSE times
   * the size of the expected value. */
  real error;
  gidx beyond;
  struct identity inputs;
  real *mean;           /* [k] inner products of mean and atoms; sum - mean is the centred score */
  uint64_t fingerprint; /* of all lists and sums */
  struct arena arena;
};
#define ATTRIBUTION_CLOSE 1e-5

/* attribute_work(): approximate multiply-adds of attribution.  attribute_queries(): the queries
 * that a rank handles at a time.  attribute_bytes(): the bytes that a GPU needs for the atoms and
 * for the lists of these queries, besides the memory of attention itself. */
double attribute_work(const struct attribute_task *task);
idx attribute_queries(const struct attribute_task *task, int ranks);
gidx attribute_bytes(const struct attribute_task *task, int ranks);

/* Run the job.  The bits of the lists do not depend on block, threads, device or ranks.  ERR_INPUT:
 * rows, atoms and supports do not belong together, which may show only at the last row; or what
 * harvest_run() refuses.  ERR_MEMORY with the numbers.  Collective; the same status on every rank.
 * Call attribute_free() afterwards. */
int attribute_run(struct comm *c, const struct attribute_task *task, struct attribute_result *r);
void attribute_free(struct attribute_result *r);

#endif
