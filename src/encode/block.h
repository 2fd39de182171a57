/* SPDX-License-Identifier: BSD-3-Clause
 * A block of rows on its way from its rows to its results.
 *
 * Floor: encode; included by src/encode only. */
#ifndef ENCODE_BLOCK_H
#define ENCODE_BLOCK_H

#include "device/buffer.h"

struct encode;

/* Two blocks are in flight and the rows of a third are read; each block needs its rows until its
 * codes are solved. */
enum { BLOCKS_IN_FLIGHT = 2, ROW_BUFFERS = BLOCKS_IN_FLIGHT + 1 };

/* A group's block of rows between the reading of its rows and the gathering of its results, with
 * the blocks of the other groups in the same turn.  A rank's share of a block is a run of
 * consecutive rows. */
struct block_in_flight {
  gidx superblock_first;
  idx superblock_rows;      /* rows of all groups; 0: no turn */
  gidx first;               /* of this group's */
  idx n;                    /* 0: it has no rows in this turn */
  idx mine_first, mine;     /* this rank's share of its group's rows */
  idx *shares;              /* [size] rows of each rank of all groups */
  idx round;                /* counted from 1 */
  idx entries_begin;        /* the round fills entries of supports from here .. */
  idx entries_end;          /* .. to the one before here */
  idx solved;               /* support entries that have codes */
  int routed;               /* the round's lists wait to be merged */
  struct buffer *rows;      /* borrowed: float [block][p] all rows of the block */
  struct buffer residual;   /* float [block][p], rounds > 1 */
  struct buffer lists;      /* struct entry [block][top_k] over this rank's tiles */
  struct buffer power;      /* idx [block] of the round's rows of frames (N.2) */
  struct buffer received;   /* struct entry [size][share][top_k], size > 1 */
  struct buffer slot;       /* idx [share][s] places of supports in the table */
  struct buffer state;      /* [share] blocks of device_codes_state_bytes(), rounds > 1 */
  struct atom_table *table; /* borrowed */
  real *ended;              /* [sum blocks that may end in it][2][columns of this rank] */
  idx *chosen;              /* [block][s] supports so far of all rows, rounds > 1 */
  idx *atoms;               /* [share][s] supports of this rank's rows */
  float *score;             /* [share][s] */
  idx *out_atoms;           /* [groups * block][s] on rank 0, by_ranks [block][s] on each, as are */
  float *out_score, *out_codes; /* the next two: what is written */
};

/* Bring a block from its merged lists to what is routed next: solve its codes; after the last round
 * send its results to rank 0 and begin the block of the next turn, if there is one.  What fails in
 * one group becomes known to all here.  Collective. */
int block_prepare(struct encode *e, struct block_in_flight *b);

/* Go to the next round that adds atoms; a block begins before the first.  Not collective. */
void block_round_next(struct encode *e, struct block_in_flight *b);

/* Where a turn would begin with a sum block: what asks this rank to end the job before it, as bits?
 * Not collective. */
uint64_t encode_stop_asked(const struct encode *e);

#endif
