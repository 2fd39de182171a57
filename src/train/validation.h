/* SPDX-License-Identifier: BSD-3-Clause
 * What an encoder and its dictionary explain of rows that they were not trained on, as
 * `encode --encoder` would say it (N.24), and by the same operation of a device.
 *
 * Floor: train.  Each rank holds its sum blocks of the rows, as a fit does. */
#ifndef TRAIN_VALIDATION_H
#define TRAIN_VALIDATION_H

#include "comm/comm.h"
#include "device/device.h"
#include "model/encoder.h"
#include "model/rows.h"
#include "model/train.h"
#include "refit/sparse_coder.h"

struct train_validation {
  struct comm *c;                /* borrowed, as is the next */
  const struct row_source *rows; /* none: there is nothing to judge by */
  idx k, p, s;
  int has_threshold; /* codes are the scores above the state's threshold, not s in a row */
  int threads;
  const char *variant, *kernels; /* struct device_options */
  gidx first;                    /* the first own row */
  idx n;                         /* own rows */
  float *x;                      /* [n][p] */
  struct row_quality *quality;   /* [n] */
  float *bias, *threshold;       /* [k] */
  gidx *start;                   /* [n + 1] where the entries of a row begin in `found` */
  idx *lengths;                  /* [n] */
  struct entry_list found;
  struct device device; /* has the encoder's matrix while it judges */
  struct device host;   /* a CPU, for qualities; none where the device is one */
  struct buffer all;    /* around x */
  real tss;             /* rank 0 */
  real l0;              /* codes a row that were found last, on every rank */
  uint64_t hash;        /* of the rows (model/identity.h); 0: there are none */
};

/* Set c, rows, k, p, s, has_threshold, threads, variant and kernels first.  Arrays are the arena's;
 * a dry one counts them. */
int train_validation_alloc(struct train_validation *j, struct arena *arena);
/* What judging on a device of this kind takes of the host beside, about. */
gidx train_validation_beside(const struct train_validation *j, const char *kind);

/* Open a device of this kind; where a GPU's memory is short of what the training leaves, a CPU, and
 * the log says so.  Not collective.  train_validation_close() is safe on a zeroed struct. */
int train_validation_open(struct train_validation *j, const char *kind);
void train_validation_close(struct train_validation *j);

/* Read the rows and subtract mean[p] unless NULL.  ERR_INPUT, also where they do not vary.
 * Collective; the same status on every rank. */
int train_validation_read(struct train_validation *j, const real *mean);

/* *explained, on every rank <- the explained variance of the rows, NaN where there are none, or a
 * score is not finite, or the state has no threshold yet; it is that of rows times 2^scale.
 * Collective, as above. */
int train_validation_run(struct train_validation *j, const struct train_state *state, int scale,
                         real *explained);

#endif
