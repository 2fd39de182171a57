/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a block of rows, from reading its rows to gathering its results.
 *
 * Floor: encode; included by src/encode only. */
#ifndef ENCODE_BLOCK_H
#define ENCODE_BLOCK_H

#include "device/buffer.h"

struct encode;

/* Two blocks are in flight while the rows of a third are read.  A block needs its rows until its
 * codes are solved. */
enum { BLOCKS_IN_FLIGHT = 2, ROW_BUFFERS = BLOCKS_IN_FLIGHT + 1 };

/* The block of a group, and the superblock that it is part of (encode.h).  A rank's share of a
 * block is a run of consecutive rows. */
struct block_in_flight {
  gidx superblock_first;
  idx superblock_rows;      /* rows of the blocks of all groups; 0: no superblock */
  gidx first;               /* first row of this group's block */
  idx n;                    /* rows of this group's block; 0: none in this superblock */
  idx mine_first, mine;     /* this rank's share, counted from b->first */
  idx *shares;              /* [size] rows of each rank of all groups */
  idx round;                /* counted from 1 */
  idx entries_begin;        /* this round fills entries entries_begin */
  idx entries_end;          /* .. entries_end - 1 of each support */
  idx solved;               /* support entries that have codes */
  int routed;               /* the lists of the round wait to be merged */
  struct buffer *rows;      /* borrowed: float [block][p] all rows of the block */
  struct buffer residual;   /* float [block][p], rounds > 1 */
  struct buffer lists;      /* struct entry [block][top_k] of this rank's tiles */
  struct buffer power;      /* frames: idx [block] route_power() of the rows of the round */
  struct buffer received;   /* struct entry [ranks of the group][share][top_k]; if there are
                             * several */
  struct buffer slot;       /* idx [share][s] positions of the support's atoms in the table */
  struct buffer state;      /* [share] blocks of device_codes_state_bytes(), rounds > 1 */
  struct atom_table *table; /* borrowed */
  real *ended;              /* chains of the sum blocks that end in the block (statistics.h):
                             * [..][2][columns of this rank] */
  idx *chosen;              /* [block][s] supports so far of all rows of the block, rounds > 1 */
  idx *atoms;               /* [share][s] supports of this rank's rows */
  float *score;             /* [share][s] */
  idx *out_atoms;           /* written: [groups * block][s] on rank 0; by_ranks: [block][s] on
                             * each */
  float *out_score, *out_codes; /* written, with the same rows */
};

/* Continue a block whose lists were merged: solve the codes of the supports so far, and prepare the
 * next routing.  After the last round the results go to the ranks that write them, and the block of
 * the next superblock begins, if there is one.  Here all groups learn of a failure in one group.
 * Collective. */
int block_cycle(struct encode *e, struct block_in_flight *b);

/* Begin the next round that adds atoms.  For a new block this is the first round.  Not
 * collective. */
void block_round_next(struct encode *e, struct block_in_flight *b);

/* Bits: this rank's reasons to stop before the next superblock.  0 if that is the first one, if
 * there is none, or if it does not begin a sum block.  Not collective. */
uint64_t encode_stop_asked(const struct encode *e);

#endif
