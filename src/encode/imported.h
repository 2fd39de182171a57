/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of an imported encoder (N.24) in the place of routing: no rounds, nothing is solved, and
 * rows have as many atoms as the encoder gives them.
 *
 * Floor: encode; included by src/encode only.
 *
 * Each rank has the whole matrix and all atoms, and takes whole sum blocks: the grid is one of as
 * many groups as ranks.  Rows are described by the host's threads, whatever the device is. */
#ifndef ENCODE_IMPORTED_H
#define ENCODE_IMPORTED_H

#include "encode/encode.h"
#include "encode/scores.h"
#include "model/codes.h"

struct encode;

/* Supports that follow each other, which grow as they are found. */
struct entry_list {
  idx *atoms; /* [n], as the next two; owned */
  float *score, *codes;
  gidx n, capacity;
};

/* What a thread works in, and what it found of its share of a block. */
struct imported_share {
  float *scores; /* [SCORE_ROWS][scores_width()] */
  idx *support;  /* [k] */
  float *codes;  /* [k] */
  struct entry_list found;
  gidx bad_row; /* of the block: the first with a score or code that is not finite; -1: none */
  idx bad_atom; /* the first of its atoms */
  int no_memory;
};

struct imported {
  struct score_matrix matrix;
  float *raw, *x;                /* [block][p] this rank's rows, and less the mean */
  gidx *start;                   /* [block + 1] where their entries begin in `mine` */
  idx *lengths, *all_lengths;    /* [block]; [groups * block] on rank 0 */
  struct row_quality *quality;   /* [block] */
  real *ended;                   /* [sum blocks that may end in it][2][p] */
  gidx *counts;                  /* [size] entries of each rank */
  struct imported_share *shares; /* [threads] */
  idx n;                         /* rows of this rank's block */
  gidx first;                    /* of the task's rows */
  struct entry_list mine, theirs;
  uint64_t terms; /* of the weights that this rank read (model/identity.h) */
};

/* The memory of such a job, in the place of that of routing; as encode_alloc(). */
int imported_alloc(struct encode *e, struct encode_memory *m);
/* Read this rank's part of the matrix and check it, in the files worker. */
int imported_read(struct encode *e);
/* Give it to all ranks, and compare the encoder's hash.  status: of reading.  Collective. */
int imported_share_out(struct encode *e, int status);
/* All rows.  Collective. */
int imported_run(struct encode *e);
/* What grew; before the arena is freed. */
void imported_free(struct encode *e);

#endif
