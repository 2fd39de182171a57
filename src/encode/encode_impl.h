/* SPDX-License-Identifier: BSD-3-Clause
 * The state of an encode job, which its files share.
 *
 * Floor: encode; included by src/encode only.  encode.h says in which order to read the files.
 *
 * Each rank has up to five threads, besides those of base/team.h.  The main thread alone talks to
 * other ranks and starts work on the device.  The other four run while the main thread routes:
 *
 * - the files worker reads files, and writes if there is no writer;
 * - the writer writes the results;
 * - the confirmer compares the hash of the dictionary;
 * - the background worker merges, counts and sums, and uses no file.
 *
 * These four use only those functions of the device that device/device.h and device/preprocess.h
 * allow to threads other than the main thread. */
#ifndef ENCODE_ENCODE_IMPL_H
#define ENCODE_ENCODE_IMPL_H

#include "base/memory.h"
#include "base/worker.h"
#include "device/codes.h"
#include "device/preprocess.h"
#include "device/route.h"
#include "encode/background.h"
#include "encode/block.h"
#include "encode/encode.h"
#include "encode/fetch.h"
#include "encode/files.h"
#include "encode/imported.h"
#include "encode/statistics.h"

struct encode {
  const struct encode_task *task;
  struct comm *c;     /* all ranks */
  struct comm group;  /* ranks of this rank's group, which share the dictionary */
  struct comm like;   /* the rank of each group that holds the same atoms */
  int groups, number; /* number of groups, and this rank's group */
  struct encode_result *result;
  struct device device;
  struct shard shard;
  struct atom_table tables[BLOCKS_IN_FLIGHT]; /* one per block if rounds > 1; otherwise both blocks
                                               * use the first */
  struct statistics statistics;
  struct worker files, writer, background, confirmer;
  struct file_job file_job;
  struct background_job background_job;
  struct arena arena;
  idx p, d, s, block;
  idx max_request;                 /* atoms that this rank's share of a block may ask for */
  real *shift;                     /* [p] */
  struct buffer rows[ROW_BUFFERS]; /* float [block][p] */
  struct preprocess preprocess;    /* on a GPU; zeros on a CPU, and with an encoder */
  struct buffer codes;             /* float [share][s][d] */
  struct buffer quality;           /* struct row_quality [share] */
  struct row_quality *qualities;   /* [groups * block], rank 0 */
  real *out_ended;                 /* rank 0: chains of the ended sum blocks of all groups (struct
                                    * chains) */
  gidx *ended_blocks;              /* [groups] ended sum blocks of the superblock that was
                                    * gathered */
  idx *counts, *recv_counts;       /* [size] */
  struct block_in_flight in_flight[BLOCKS_IN_FLIGHT];
  struct imported imported;      /* with an encoder: used instead of in_flight */
  gidx end;                      /* where the job ends: after all rows, or earlier when it is asked
                                  * to stop */
  gidx next, read;               /* first row of the next superblock, and of the next reading */
  gidx begun, readings;          /* numbers of blocks begun, and of readings begun */
  uint64_t terms[ROW_BUFFERS];   /* sum of the hash terms of the rows in each buffer */
  gidx finished_rows;            /* of superblocks whose results were gathered */
  struct support_block finished; /* to be written by this rank; n = 0: nothing */
};

/* The rows that a task's rows are a part of, or the task's rows if they are all. */
const struct row_source *encode_whole(const struct encode_task *task);

/* ERR_INPUT as soon as the confirmer has found that the dictionary's hash is wrong. */
int encode_confirm_poll(struct encode *e);

/* Wait until the confirmer has ended, if it runs. */
int encode_confirm_wait(struct encode *e);

/* Does the GPU that routes the rows also compute them? */
int encode_rows_made(const struct row_source *rows, const struct device *dev);

/* Rows of the superblock that begins at this row.  A superblock ends with a sum block if it can, so
 * that the rows done so far may be a part. */
idx encode_superblock_at(const struct encode *e, gidx row);
/* first, count <- which rows of a superblock of n rows are the group's block.  Several groups get
 * whole sum blocks, as evenly as possible.  encode_rank_partition() gives a rank's share of its
 * group's block. */
void encode_group_partition(const struct encode *e, gidx n, int group, gidx *first, gidx *count);
void encode_rank_partition(const struct encode *e, gidx n, int rank, gidx *first, gidx *count);

/* encode_init() sets the state before anything is opened.  encode_device_options() tells what the
 * device will be asked for. */
void encode_init(struct encode *e, const struct encode_task *task, struct comm *c,
                 struct encode_result *result);
struct device_options encode_device_options(const struct encode *e);
/* encode_open() opens the device with the dictionary on it.  encode_dictionary_name() computes the
 * dictionary's hash; ERR_INPUT if the task names another hash.  encode_end() frees the device, all
 * memory except the result's, and e itself.  All are collective. */
int encode_open(struct encode *e);
int encode_dictionary_name(struct encode *e);
int encode_end(struct encode *e);
/* Add up the counts of all ranks, and fill in the metrics.  Collective. */
int encode_finish(struct encode *e);

#endif
