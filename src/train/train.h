/* SPDX-License-Identifier: BSD-3-Clause
 * Training an autoencoder: from rows to an encoder and a dictionary that describe rows which the
 * training never saw (N.43, N.44).
 *
 * Floor: train.  Knows no files: rows come from a source, and what is reached goes to a sink.
 *
 * In a step ranks share out the rows of the batch: scores, codes, errors.  Then each has some of
 * the atoms: their gradients over all rows of the batch, their moments, their step.  So no sum is
 * ever divided, and the weights are the same bits on any number of ranks: of any kind, or, where
 * scores are made by matrix units (N.45), of such as add alike. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/precision.h"
#include "model/points.h"
#include "model/rows.h"
#include "model/split.h"
#include "model/train.h"

enum { TRAIN_HELD_MOST = 65536 }; /* rows, about, that are held out at most */

struct train_task {
  const struct row_source *rows;
  const struct row_source *held;   /* rows to judge by; NULL: windows of `rows` are held out */
  real held_out_fraction;          /* of the windows, for that; 0: nothing is held out */
  const struct atom_source *atoms; /* to start with, d = 1; NULL: random ones */
  const real *mean;                /* [p] of these atoms; NULL: none */
  const float *encoder, *bias;     /* [k][p], [k] of them, for rows as they are; NULL: tied */
  float threshold;                 /* of that encoder, where sizes.l0 is not 0 */
  int center;                      /* without atoms: subtract the column means of the fitted rows */
  struct train_sizes sizes;        /* p: that of the rows; dead_rows 0: one epoch */
  uint64_t seed;
  gidx steps;               /* 0: so many epochs */
  gidx epochs;              /* in place of steps */
  gidx every;               /* steps between two lines; 0: an epoch */
  idx batch;                /* rows of a step */
  enum precision precision; /* of scores in a step; but for f32 a GPU has to be there */
  struct learning_rate rate;
  gidx beside; /* bytes that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct train_point *start;        /* go on from here; NULL: begin anew */
};

/* Why a point is handed over: it has a new line; it is what a run can go on from, with moments; or
 * the end. */
enum train_reason { TRAIN_LINE, TRAIN_STATE, TRAIN_END };

/* What is handed over, valid during the call, on every rank. */
struct train_sink {
  void *self;
  int (*point)(void *self, const struct train_point *point, enum train_reason why); /* collective */
  struct stops stops;   /* polled before the first step and in each; some ask for a state alone */
  struct stops reading; /* asked while the rows are read for their mean: all is then lost */
};

enum train_phase {
  TRAIN_START,  /* rows looked at, mean, held-out rows read */
  TRAIN_READ,   /* pools of rows */
  TRAIN_SCORES, /* products with the encoder */
  TRAIN_CODES,  /* the largest, and what they leave over */
  TRAIN_SHARE,  /* what ranks tell each other */
  TRAIN_GRADIENT,
  TRAIN_MOVE,
  TRAIN_JUDGE,
  TRAIN_WRITE, /* the sink */
  TRAIN_PHASES
};

struct train_result {
  gidx steps, steps_each; /* done, of an epoch */
  gidx fitted_rows, held_out_rows;
  int stopped;
  uint64_t fingerprint; /* of the weights that were reached */
  idx top_s;
  char device[280];
  struct phase phases[TRAIN_PHASES];
};

/* *fitted, *held <- the rows that are learned from, and those that judge; they read from the split.
 * ERR_INPUT: there are too few. */
int train_rows_split(const struct train_task *task, struct row_split *split,
                     struct row_source *fitted, struct row_source *held);

/* What shapes and sizes say before anything of their size is allocated.  Not collective.
 * ERR_INPUT, ERR_USAGE. */
int train_task_check(const struct train_task *task);

/* Collective; the same status on every rank.  ERR_INPUT: what train_task_check() refuses, values
 * that are not finite, also where the rate is too high, or a start that does not fit the rows
 * or comes of a matrix unit that adds otherwise; ERR_DEVICE; ERR_MEMORY before any work. */
int train_run(const struct train_task *task, struct comm *c, const struct train_sink *sink,
              struct train_result *result);

#endif
