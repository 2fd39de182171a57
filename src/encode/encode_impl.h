/* SPDX-License-Identifier: BSD-3-Clause
 * The state of an encode job, which its files share.
 *
 * Floor: encode; included by src/encode only.  encode.h says in which order to read the files.
 *
 * Three threads work in a rank.  The main thread alone talks to other ranks and lets the device
 * compute; the files worker alone reads and writes files; the background worker merges, counts and
 * sums, and touches neither.  The two workers run while the main thread routes. */
#ifndef ENCODE_ENCODE_IMPL_H
#define ENCODE_ENCODE_IMPL_H

#include "base/memory.h"
#include "base/worker.h"
#include "device/codes.h"
#include "device/route.h"
#include "encode/background.h"
#include "encode/block.h"
#include "encode/encode.h"
#include "encode/fetch.h"
#include "encode/files.h"
#include "encode/statistics.h"

struct encode {
  const struct encode_task *task;
  struct comm *c;
  struct encode_result *result;
  struct device device;
  struct shard shard;
  struct atom_table tables[BLOCKS_IN_FLIGHT]; /* both blocks share the first, unless rounds > 1 */
  struct statistics statistics;
  struct worker files, background;
  struct file_job file_job;
  struct background_job background_job;
  struct arena arena;
  idx p, d, s, block;
  idx max_request;                 /* atoms that this rank's share of a block may ask for */
  real *shift;                     /* [p] */
  struct buffer rows[ROW_BUFFERS]; /* float [block][p] */
  struct buffer codes;             /* float [share][s][d] */
  struct buffer quality;           /* struct row_quality [share] */
  struct row_quality *qualities;   /* [block], rank 0 */
  idx *counts, *recv_counts;       /* [size] */
  struct block_in_flight in_flight[BLOCKS_IN_FLIGHT];
  gidx end;                      /* behind the last row: all, or less where it is asked to stop */
  gidx next, read;               /* first row of the next block, and of the next reading */
  gidx begun, readings;          /* blocks so far */
  uint64_t terms[ROW_BUFFERS];   /* of the rows that each buffer was read with */
  gidx finished_rows;            /* of blocks whose results have left */
  struct support_block finished; /* on rank 0, to be written; n = 0: nothing */
};

/* The rows of which those of a task are a part, or all. */
const struct row_source *encode_whole(const struct encode_task *task);

/* Rows of the block that begins at a row: blocks end where sum blocks do, so that what is done may
 * be a part. */
idx encode_block_at(const struct encode *e, gidx row);

/* The state before anything is opened, and what its device will be asked for. */
void encode_init(struct encode *e, const struct encode_task *task, struct comm *c,
                 struct encode_result *result);
struct device_options encode_device_options(const struct encode *e);

#endif
