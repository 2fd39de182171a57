/* SPDX-License-Identifier: BSD-3-Clause
 * What an encoder and its dictionary explain of rows that they were not trained on, as
 * `encode --encoder` would say it (N.24).
 *
 * Floor: train.  Each rank holds its sum blocks of the rows, as a fit does. */
#ifndef TRAIN_JUDGE_H
#define TRAIN_JUDGE_H

#include "comm/comm.h"
#include "encode/scores.h"
#include "model/rows.h"
#include "model/train.h"
#include "refit/coder.h"

struct train_judge {
  struct comm *c;                /* borrowed, as is the next */
  const struct row_source *rows; /* none: there is nothing to judge by */
  idx k, p, s;
  int threads;
  gidx first;                  /* the first own row */
  idx n;                       /* own rows */
  float *x;                    /* [n][p] */
  struct row_quality *quality; /* [n] */
  struct score_matrix matrix;
  struct judge_work *work; /* [threads] */
  float *bias;             /* [k] */
  real tss;                /* rank 0 */
  uint64_t hash;           /* of the rows (model/identity.h); 0: there are none */
};

/* Set c, rows, k, p, s and threads first.  Arrays are the arena's; a dry one counts them. */
int train_judge_alloc(struct train_judge *j, struct arena *arena);

/* Read the rows and subtract mean[p] unless NULL.  ERR_INPUT, also where they do not vary.
 * Collective; the same status on every rank. */
int train_judge_read(struct train_judge *j, const real *mean);

/* *explained, on every rank <- the explained variance of the rows, NaN where there are none; the
 * state is that of rows times 2^scale.  Collective, as above. */
int train_judge_run(struct train_judge *j, const struct train_state *state, int scale,
                    real *explained);

#endif
