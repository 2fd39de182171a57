/* SPDX-License-Identifier: BSD-3-Clause
 * The encode stage from inside: its state, and what its files do for each other.
 *
 * encode.c runs over the blocks, encode_memory.c has their buffers, encode_block.c the turn of a
 * block, encode_steps.c the steps of a turn; encode_files.c and encode_behind.c have what goes on
 * behind the routing, in a thread each.  All but these two run on the main thread. */
#ifndef STAGE_ENCODE_INSIDE_H
#define STAGE_ENCODE_INSIDE_H

#include "base/memory.h"
#include "base/worker.h"
#include "stage/encode.h"
#include "stage/statistics.h"
#include "stage/tiles.h"

/* Two blocks are in flight and a third is read; each has its rows until its codes are solved. */
enum { FLIGHTS = 2, ROW_BUFFERS = FLIGHTS + 1 };

/* A block of rows between the reading of its rows and the gathering of its results. */
struct flight {
  gidx first;
  idx n;                    /* 0: no block */
  idx mine_first, mine;     /* own share of its rows */
  idx *shares;              /* [size] rows of each rank */
  idx round, have, now;     /* the round fills support entries have .. now - 1 */
  idx solved;               /* support entries that have codes */
  int routed;               /* the round's lists wait to be merged */
  struct buffer *rows;      /* borrowed: float [block][p] all rows of the block */
  struct buffer residual;   /* float [block][p], rounds > 1 */
  struct buffer lists;      /* struct entry [block][take] of own tiles */
  struct buffer received;   /* struct entry [size][share][take], size > 1 */
  struct buffer slot;       /* idx [share][s] */
  struct buffer state;      /* [share] blocks of codes_state(), rounds > 1 */
  struct atom_table *table; /* borrowed */
  idx *chosen;              /* [block][s] supports so far of all rows, rounds > 1 */
  idx *atoms;               /* [share][s] supports of own rows */
  float *score;             /* [share][s] */
  idx *out_atoms;           /* [block][s], rank 0; and so on */
  float *out_score, *out_codes;
};

/* What the worker for files does: writing, reading. */
struct file_job {
  const struct encode_task *task;
  gidx read_first;
  idx read_count;
  struct device *device;
  const struct buffer *read_into;
  gidx read_at;               /* bytes */
  struct support_block write; /* n = 0: nothing */
  struct phase *phases;       /* of the result */
};

/* What the other worker does while a block is routed: it merges the lists of the other block,
 * counts the results of the block that ended, and sums the columns of the rows being routed. */
struct behind_job {
  struct encode *e;
  struct flight *merge;         /* NULL: none */
  const float *summed;          /* [summed_count][p] */
  idx summed_count;             /* 0: none */
  struct support_block collect; /* own share of a block; n = 0: nothing */
  idx qualities;                /* of all rows of that block, rank 0 */
};

struct encode {
  const struct encode_task *task;
  struct comm *c;
  struct encode_result *result;
  struct device device;
  struct tiles tiles;
  struct atom_table tables[FLIGHTS]; /* one for all but several rounds */
  struct statistics statistics;
  struct worker files, behind;
  struct file_job file_job;
  struct behind_job behind_job;
  struct arena arena;
  idx p, d, s, block;
  idx wanted;                      /* atoms that a rank's share of a block may want */
  real *shift;                     /* [p] */
  struct buffer rows[ROW_BUFFERS]; /* float [block][p] */
  struct buffer codes;             /* float [share][s][d] */
  struct buffer quality;           /* struct row_quality [share] */
  struct row_quality *qualities;   /* [block], rank 0 */
  idx *counts, *other;             /* [size] */
  struct flight flights[FLIGHTS];
  gidx next, read;               /* rows that the next block and reading begin with */
  gidx ended;                    /* rows of blocks that have ended */
  struct support_block finished; /* on rank 0, to be written; n = 0: nothing */
};

/* Buffers of all sizes that depend on the block.  Drop them before the device is closed. */
int buffers_take(struct encode *e);
void buffers_drop(struct encode *e);

/* Wait for the worker for files; then let it write what is finished, and read this rank's share of
 * the next block.  Collective. */
int files_turn(struct encode *e);
int files_wait(struct encode *e);

/* Let the other worker merge the lists of `other`, if it has any, and do what else stands in
 * e->behind_job; meanwhile the main thread may route, and nothing else. */
int behind_start(struct encode *e, struct flight *other);
int behind_wait(struct encode *e);

/* A turn of a flight, from its merged lists to those of its next round: codes; when these were the
 * last, results to rank 0 and the next block of rows; routing, while the lists of `other` are
 * merged.  Collective. */
int flight_turn(struct encode *e, struct flight *f, struct flight *other);

#endif
