/* SPDX-License-Identifier: BSD-3-Clause
 * Training an autoencoder: from rows to an encoder and a dictionary that describe rows which the
 * training never saw (N.43, N.44).
 *
 * Floor: train.  Knows no files: rows come from a source, and what is reached goes to a sink.
 *
 * In a step ranks divide the rows of the batch, for scores, codes and errors.  Then they divide the
 * atoms: a rank makes the gradients of its atoms over all rows of the batch, and moves the atoms.
 * So no sum is ever divided, and the weights have the same bits on any number of ranks.  They also
 * have the same bits on any device, unless matrix units make the scores (N.45): then on units that
 * add alike. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/encoder.h"
#include "model/precision.h"
#include "model/points.h"
#include "model/rows.h"
#include "model/split.h"
#include "model/train.h"

enum { TRAIN_HELD_MOST = 65536 }; /* rows that are held out at most, about */

struct train_task {
  const struct row_source *rows;
  const struct row_source *held;   /* held-out rows; NULL: windows of `rows` are held out */
  real held_out_fraction;          /* of the windows of `rows`; 0: nothing is held out */
  const struct atom_source *atoms; /* to start with, d = 1; NULL: random ones */
  const real *mean;                /* [p] of these atoms; NULL: none */
  const float *encoder, *bias;     /* [k][p], [k] of them, for rows that are not scaled; NULL:
                                    * tied */
  float threshold;                 /* of that encoder, if sizes.l0 is not 0 */
  int center;                      /* without atoms: subtract the column means of the fitted rows */
  struct train_sizes sizes;        /* p: columns of the rows; dead_rows 0: one epoch */
  uint64_t seed;
  gidx steps;               /* 0: epochs counts */
  gidx epochs;              /* used if steps is 0 */
  gidx every;               /* steps between two lines; 0: one epoch */
  idx batch;                /* rows of a step */
  enum precision precision; /* of scores in a step; other than f32 needs a GPU */
  struct learning_rate rate;
  gidx beside; /* bytes that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct train_point *start;        /* resume from here; NULL: begin anew */
};

/* Why the sink gets a point: it has a new line; or it is a state to resume from, with moments; or
 * it is the end. */
enum train_reason { TRAIN_LINE, TRAIN_STATE, TRAIN_END };

/* What the sink gets, on every rank; valid during the call. */
struct train_sink {
  void *self;
  int (*point)(void *self, const struct train_point *point, enum train_reason why); /* collective */
  struct stops stops;   /* polled before the first step and in each; may ask to save only */
  struct stops reading; /* asked while the mean is computed: a stop then loses all */
};

enum train_phase {
  TRAIN_START,  /* reading rows for the mean and the hash; held-out rows */
  TRAIN_READ,   /* pools of rows */
  TRAIN_SCORES, /* products with the encoder */
  TRAIN_CODES,  /* choosing codes, and their errors */
  TRAIN_SHARE,  /* exchanges among ranks */
  TRAIN_GRADIENT,
  TRAIN_MOVE,
  TRAIN_JUDGE,
  TRAIN_WRITE, /* the sink */
  TRAIN_PHASES
};

struct train_result {
  gidx steps, steps_each; /* steps done; steps per epoch */
  gidx fitted_rows, held_out_rows;
  int stopped;
  uint64_t fingerprint; /* of the weights at the end */
  idx top_s;
  char device[280];
  struct phase phases[TRAIN_PHASES];
};

/* *fitted, *held <- the rows that are fitted, and held out; they read from the split.  ERR_INPUT:
 * there are too few. */
int train_rows_split(const struct train_task *task, struct row_split *split,
                     struct row_source *fitted, struct row_source *held);

/* Check shapes and sizes before anything large is allocated.  Not collective.  ERR_INPUT,
 * ERR_USAGE. */
int train_task_check(const struct train_task *task);

/* Run the training.  Collective; the same status on every rank.  ERR_INPUT: what train_task_check()
 * refuses; values that are not finite, also if the rate is too high; a start that does not fit the
 * rows, or comes from a matrix unit that adds otherwise.  ERR_DEVICE.  ERR_MEMORY before any
 * work. */
int train_run(const struct train_task *task, struct comm *c, const struct train_sink *sink,
              struct train_result *result);

/* The encoder of a point, for rows of p columns that are not scaled: it takes `top` codes, or with
 * z->l0 those above the threshold.  bias[k] and threshold[k] are filled. */
struct encoder train_encoder(const struct train_point *point, const struct train_sizes *z, idx p,
                             idx top, float *bias, float *threshold);

#endif
