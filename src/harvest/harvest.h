/* SPDX-License-Identifier: BSD-3-Clause
 * Rows from attention: each rank computes its share of a block of queries, rank 0 writes the block.
 *
 * Floor: harvest.  Knows no files: captures come from a source, rows go to a sink. */
#ifndef HARVEST_HARVEST_H
#define HARVEST_HARVEST_H

#include "base/memory.h"
#include "base/types.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/capture.h"
#include "model/rows.h"

/* Takes rows, and the logarithms of the sums of their weights; blocks come in ascending order. */
struct harvest_sink {
  void *self; /* borrowed */
  /* rows[count][heads dv], lse[count][heads] */
  int (*write)(void *self, gidx first, gidx count, const float *rows, const float *lse);
};

/* What ranks divide: queries, each with all positions that it sees; or shards of positions, each
 * with all queries.  No bit depends on it. */
enum harvest_cut { HARVEST_QUERIES, HARVEST_POSITIONS };

struct harvest_task {
  const struct capture_source *capture; /* borrowed, like the next two */
  struct device *device;
  const struct harvest_sink *sink; /* on rank 0 */
  idx block;                       /* queries of all ranks at a time; 0: chosen */
  enum harvest_cut cut;
};

struct harvest_result {
  double pairs;         /* triples of a query, a head and a position that it sees */
  gidx blind;           /* queries that see nothing */
  uint64_t fingerprint; /* of the rows */
};

/* Approximate multiply-adds of all rows. */
double harvest_work(const struct capture_source *capture);
/* Can the device compute `queries` queries at a time (0: the default of a single rank)?  A CPU
 * always can.  A GPU must hold all keys and values of the capture, or pieces of them, and `beside`
 * more bytes: otherwise ERR_MEMORY.  ERR_DEVICE for heads that it does not take.  Not
 * collective. */
int harvest_device_check(const struct capture_source *capture, struct device *device, idx queries,
                         gidx beside);

/* Positions, if there are too few queries for the ranks but enough positions; otherwise queries. */
enum harvest_cut harvest_cut_choose(const struct capture_source *capture, int ranks);

/* Compute all rows by (N.27).  The bits do not depend on block, device or ranks.  ERR_INPUT names
 * the lowest row that is not finite.  Collective; the same status on every rank. */
int harvest_run(struct comm *c, const struct harvest_task *task, struct harvest_result *result);

/* The rows of a capture as a source, which computes a row when it is read, in the reading thread.
 * The capture and the device are borrowed, and nothing else may use the device.  Not collective.
 * Call harvest_rows_close() also when this fails; it is safe on NULL. */
struct harvest_reader;
int harvest_rows_open(struct row_source *rows, struct harvest_reader **reader,
                      const struct capture_source *capture, struct device *device);
void harvest_rows_close(struct harvest_reader *reader);

#endif
