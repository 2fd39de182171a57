/* SPDX-License-Identifier: BSD-3-Clause
 * Supports by an imported encoder (N.24) instead of routing.  There are no rounds, and rows have as
 * many atoms as the encoder gives them.  The codes are the encoder's, or solved (N.24k).
 *
 * Floor: encode; included by src/encode only.
 *
 * Each rank is a group of its own: it has the whole matrix and all atoms, and takes whole sum
 * blocks.  The device holds the matrix, finds supports, and solves codes.  It holds the atoms only
 * if it solves codes.  The quality of codes is computed by host threads, whatever the device is. */
#ifndef ENCODE_IMPORTED_H
#define ENCODE_IMPORTED_H

#include "encode/encode.h"
#include "device/encoder.h"
#include "encode/active.h"
#include "encode/ragged.h"
#include "model/codes.h"

struct encode;

/* The work memory of a job with an imported encoder, on one rank. */
struct imported {
  float *weights;     /* [k][p] also on the device, unless the encoder is ENCODER_ACTIVE */
  struct buffer rows; /* float [block][p] as the encoder takes them: raw or x */
  /* float [k][p]: the atoms; only if codes are solved. */
  struct buffer table;
  struct ragged ragged;
  struct active active;     /* for an encoder of kind ENCODER_ACTIVE */
  struct encoder by;        /* finds the supports: the task's encoder, or one made from it and the
                             * first cut (N.58) */
  float *threshold;         /* [k] of `by`, with a cut */
  struct key_window window; /* for finding the cuts, like own_bins */
  gidx *own_bins;
  float *raw, *x;              /* [block][p] this rank's rows, as read and less the mean */
  struct device host;          /* a CPU, for qualities; not opened if e->device is one */
  gidx *start;                 /* [block + 1] where each row's entries begin in `mine` */
  idx *lengths, *all_lengths;  /* [block]; [groups * block] on rank 0 */
  struct row_quality *quality; /* [block] */
  real *ended;                 /* [sum blocks that may end in the block][2][p] */
  gidx *counts;                /* [size] entries of each rank */
  idx n;                       /* rows of this rank's block */
  gidx first;                  /* number of the first of these rows among the task's rows */
  struct entry_list mine, theirs;
  uint64_t terms; /* sum of the hash terms of the weights that this rank read (model/identity.h) */
};

/* Allocate the memory of a job with an imported encoder.  Otherwise like encode_alloc(), which
 * calls this instead of allocating memory for routing. */
int imported_alloc(struct encode *e, struct encode_memory *m);
/* Read and check this rank's part of the matrix, in the files worker. */
int imported_read(struct encode *e);
/* Give every rank the parts of all ranks, and compare the encoder's hash.  status: this rank's, of
 * reading.  Collective. */
int imported_broadcast(struct encode *e, int status);
/* Handle all rows.  Collective. */
int imported_run(struct encode *e);
/* Free the arrays that grew.  Call it before the arena is freed. */
void imported_free(struct encode *e);

#endif
