/* SPDX-License-Identifier: BSD-3-Clause
 * How well an encoder and its dictionary explain held-out rows: the figures of `encode --encoder`
 * (N.24), computed by the same device operation.
 *
 * Floor: train.  Each rank holds its sum blocks of the rows (base/sums.h), as in a fit. */
#ifndef TRAIN_VALIDATION_H
#define TRAIN_VALIDATION_H

#include "comm/comm.h"
#include "device/device.h"
#include "model/encoder.h"
#include "model/rows.h"
#include "model/train.h"
#include "refit/sparse_coder.h"

struct train_validation {
  struct comm *c;                /* borrowed, as rows is */
  const struct row_source *rows; /* the held-out rows of all ranks; rows->n = 0: none */
  idx k, p, s;
  int has_threshold; /* 1: codes are the scores above the state's threshold; 0: s per row */
  int threads;
  const char *variant, *kernels; /* struct device_options */
  gidx first;                    /* first row of this rank */
  idx n;                         /* rows of this rank, which the arrays below hold */
  float *x;                      /* [n][p] */
  struct row_quality *quality;   /* [n] */
  float *bias, *threshold;       /* [k] */
  gidx *start;                   /* [n + 1] where the entries of a row begin in `found` */
  idx *lengths;                  /* [n] */
  struct entry_list found;
  struct device device; /* holds the encoder's matrix while it finds codes */
  struct device host;   /* a CPU for qualities, if the device is a GPU */
  struct buffer own;    /* wraps x */
  real tss;             /* total sum of squares; rank 0 */
  real l0;              /* mean codes per row in the last evaluation, on every rank */
  uint64_t hash;        /* of all held-out rows (model/identity.h); 0: none */
};

/* Set c, rows, k, p, s, has_threshold, threads, variant and kernels first.  Arrays live in the
 * arena; a dry arena only counts them. */
int train_validation_alloc(struct train_validation *v, struct arena *arena);
/* About how much host memory the evaluation on a device of this kind takes besides the arrays. */
gidx train_validation_beside(const struct train_validation *v, const char *kind);

/* Open a device of this kind.  If the training leaves too little memory on a GPU, a CPU is opened
 * instead, and the log says so.  Not collective.  train_validation_close() is safe on a zeroed
 * struct. */
int train_validation_open(struct train_validation *v, const char *kind);
void train_validation_close(struct train_validation *v);

/* Read the rows and subtract mean[p]; NULL: none.  ERR_INPUT also if all rows are equal.
 * Collective; the same status on every rank. */
int train_validation_read(struct train_validation *v, const real *mean);

/* *explained, on every rank <- the explained variance of the rows; NaN if there are no rows, a
 * score is not finite, or codes need a threshold and the state has none yet.  Also sets v->l0.  The
 * state is for rows times 2^scale.  Collective; the same status on every rank. */
int train_validation_run(struct train_validation *v, const struct train_state *state, int scale,
                         real *explained);

#endif
