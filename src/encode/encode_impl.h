/* SPDX-License-Identifier: BSD-3-Clause
 * The state of an encode job, which its files share.
 *
 * Floor: encode; included by src/encode only.  encode.h says in which order to read the files.
 *
 * Five threads work in a rank.  The main thread alone talks to other ranks and lets the device
 * compute; the files worker reads files, and the writer, or itself, writes one; the confirmer
 * compares the hash of a dictionary; the background worker merges, counts and sums, and touches no
 * file.  These four run while the main thread routes; of a GPU they use what device/preprocess.h
 * lets them. */
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
  struct comm group;  /* those that share the atoms with this one */
  struct comm like;   /* those of all groups that hold the same atoms */
  int groups, number; /* how many, and that of this rank's */
  struct encode_result *result;
  struct device device;
  struct shard shard;
  struct atom_table tables[BLOCKS_IN_FLIGHT]; /* both blocks share the first, unless rounds > 1 */
  struct statistics statistics;
  struct worker files, writer, background, confirmer;
  struct file_job file_job;
  struct background_job background_job;
  struct arena arena;
  idx p, d, s, block;
  idx max_request;                 /* atoms that this rank's share of a block may ask for */
  real *shift;                     /* [p] */
  struct buffer rows[ROW_BUFFERS]; /* float [block][p] */
  struct preprocess preprocess;    /* of a GPU; zeros on a CPU, and with an encoder */
  struct buffer codes;             /* float [share][s][d] */
  struct buffer quality;           /* struct row_quality [share] */
  struct row_quality *qualities;   /* [groups * block], rank 0 */
  real *out_ended;                 /* rank 0: ended sum blocks of all groups (struct chains) */
  gidx *ended_blocks;              /* [groups] of the turn whose results were gathered */
  idx *counts, *recv_counts;       /* [size] */
  struct block_in_flight in_flight[BLOCKS_IN_FLIGHT];
  struct imported imported;      /* with an encoder, in the place of blocks in flight */
  gidx end;                      /* behind the last row: all, or less where it is asked to stop */
  gidx next, read;               /* first row of the next turn, and of the next reading */
  gidx begun, readings;          /* blocks so far */
  uint64_t terms[ROW_BUFFERS];   /* of the rows that each buffer was read with */
  gidx finished_rows;            /* of blocks whose results have left */
  struct support_block finished; /* on rank 0, to be written; n = 0: nothing */
};

/* The rows of which those of a task are a part, or all. */
const struct row_source *encode_whole(const struct encode_task *task);

/* ERR_INPUT as soon as the confirmer has found another hash than the dictionary is to have. */
int encode_confirm_poll(struct encode *e);

/* Wait for that hash, if it is being compared. */
int encode_confirm_wait(struct encode *e);

/* Are the rows computed on the GPU that routes them? */
int encode_rows_made(const struct row_source *rows, const struct device *dev);

/* Rows of the turn that begins at a row: turns end where sum blocks do, so that what is done may be
 * a part. */
idx encode_superblock_at(const struct encode *e, gidx row);
/* The run of a turn of n rows that is a group's block: whole sum blocks where there are several
 * groups, as even as can be.  Then the run that is a rank's share of its group's block. */
void encode_group_partition(const struct encode *e, gidx n, int group, gidx *first, gidx *count);
void encode_rank_partition(const struct encode *e, gidx n, int rank, gidx *first, gidx *count);

/* The state before anything is opened, and what its device will be asked for. */
void encode_init(struct encode *e, const struct encode_task *task, struct comm *c,
                 struct encode_result *result);
struct device_options encode_device_options(const struct encode *e);
/* Then open the device with the dictionary on it, and name that; encode_end() gives back the
 * device and all memory but the result's, *e too.  Collective. */
int encode_open(struct encode *e);
int encode_dictionary_name(struct encode *e);
int encode_end(struct encode *e);
/* Sum over ranks what each counted, and fill the metrics.  Collective. */
int encode_finish(struct encode *e);

#endif
