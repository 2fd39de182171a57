/* SPDX-License-Identifier: BSD-3-Clause
 * Supports of an imported encoder (N.24) in the place of routing: no rounds, and rows have as many
 * atoms as the encoder gives them.  Their codes are its own, or solved (N.24k).
 *
 * Floor: encode; included by src/encode only.
 *
 * Each rank has the whole matrix and all atoms, and takes whole sum blocks: the grid is one of as
 * many groups as ranks.  The device has the matrix in the place of the dictionary, and describes
 * the rows; their quality is computed by the host's threads, whatever the device is. */
#ifndef ENCODE_IMPORTED_H
#define ENCODE_IMPORTED_H

#include "encode/encode.h"
#include "device/encoder.h"
#include "encode/active.h"
#include "encode/ragged.h"
#include "model/codes.h"

struct encode;

struct imported {
  float *weights;      /* [k][p], which the device has too */
  struct buffer rows;  /* float [block][p] those of the encoder: raw or x */
  struct buffer table; /* float [k][p] the atoms, and what they are solved with; where codes
                                * are */
  struct ragged ragged;
  struct active active;     /* of an encoder of that kind */
  struct encoder by;        /* what finds the supports: the task's, or with its cut */
  float *threshold;         /* [k] of that, with a cut */
  struct key_window window; /* to find the cuts with, as is the next: own counts */
  gidx *own_bins;
  float *raw, *x;              /* [block][p] this rank's rows, and less the mean */
  struct device host;          /* a CPU, for qualities; none where e->device is one */
  gidx *start;                 /* [block + 1] where their entries begin in `mine` */
  idx *lengths, *all_lengths;  /* [block]; [groups * block] on rank 0 */
  struct row_quality *quality; /* [block] */
  real *ended;                 /* [sum blocks that may end in it][2][p] */
  gidx *counts;                /* [size] entries of each rank */
  idx n;                       /* rows of this rank's block */
  gidx first;                  /* of the task's rows */
  struct entry_list mine, theirs;
  uint64_t terms; /* of the weights that this rank read (model/identity.h) */
};

/* The memory of such a job, in the place of that of routing; as encode_alloc(). */
int imported_alloc(struct encode *e, struct encode_memory *m);
/* Read this rank's part of the matrix and check it, in the files worker. */
int imported_read(struct encode *e);
/* Give it to all ranks, and compare the encoder's hash.  status: of reading.  Collective. */
int imported_broadcast(struct encode *e, int status);
/* All rows.  Collective. */
int imported_run(struct encode *e);
/* What grew; before the arena is freed. */
void imported_free(struct encode *e);

#endif
