/* SPDX-License-Identifier: BSD-3-Clause
 * The encode stage from inside: its state, and what its files do for each other.
 *
 * encode.c runs over the blocks, encode_memory.c has their buffers, encode_files.c what goes on
 * behind the computation, encode_block.c the steps of a block. */
#ifndef STAGE_ENCODE_INSIDE_H
#define STAGE_ENCODE_INSIDE_H

#include "base/memory.h"
#include "base/worker.h"
#include "stage/encode.h"
#include "stage/statistics.h"
#include "stage/tiles.h"

/* What the worker does behind the computation of a block: column sums of the block before, whose
 * place the block after takes, writing and reading. */
struct file_job {
  struct statistics *statistics;
  const float *summed; /* [summed_count][p] */
  idx summed_count;
  const struct encode_task *task;
  gidx read_first;
  idx read_count;
  struct device *device;
  const struct buffer *read_into;
  gidx read_at;               /* bytes */
  struct support_block write; /* n = 0: nothing */
  struct phase *summing, *reading, *copying, *writing;
};

struct encode {
  const struct encode_task *task;
  struct comm *c;
  struct encode_result *result;
  struct device device;
  struct tiles tiles;
  struct statistics statistics;
  struct worker worker;
  struct file_job job;
  struct arena arena;
  idx p, d, s, block;
  real *shift;            /* [p] */
  struct buffer rows[2];  /* float [block][p] all rows of a block; one is computed, one is read */
  struct buffer residual; /* float [block][p], rounds > 1 */
  struct buffer lists;    /* struct entry [block][take] of own tiles */
  struct buffer received; /* struct entry [size][share][take] */
  struct buffer slot;     /* idx [share][s] */
  struct buffer codes;    /* float [share][s][d] */
  struct buffer state;    /* [share] blocks of codes_state(), rounds > 1 */
  struct buffer quality;  /* struct row_quality [share] */
  idx *chosen;            /* [block][s] supports so far of all rows, rounds > 1 */
  idx *atoms;             /* [share][s] supports of own rows; -1: not chosen yet */
  float *score;           /* [share][s] */
  struct row_quality *qualities; /* [block], rank 0 */
  idx *out_atoms[2];             /* [block][s], rank 0; and so on */
  float *out_score[2], *out_codes[2];
  idx *shares, *counts, *other; /* [size] */
  /* of the block in work */
  gidx first;
  idx n, mine, mine_first;
  int turn; /* which of the two buffers */
};

/* Buffers of all sizes that depend on the block.  Drop them before the device is closed. */
int buffers_take(struct encode *e);
void buffers_drop(struct encode *e);

/* Let the worker write `block` (NULL: nothing) and read this rank's share of the block at first. */
int files_start(struct encode *e, const struct support_block *block, gidx first, int turn);
int files_wait(struct encode *e);

/* The block of rows at first, read before: its supports and codes; out is what to write on rank 0,
 * valid until the block after the next.  Collective. */
int block_encode(struct encode *e, gidx first, struct support_block *out);

#endif
