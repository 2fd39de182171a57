/* SPDX-License-Identifier: BSD-3-Clause
 * Training an autoencoder: from rows to an encoder and a dictionary that describe rows which the
 * training never saw (N.43, N.44).
 *
 * Floor: train.  Knows no files: rows come from a source; weights, and lines about the progress, go
 * to a sink.
 *
 * In a step ranks divide the rows of the batch, for scores, codes and errors.  Then they divide the
 * atoms: a rank makes the gradients of its atoms over all rows of the batch, and moves the atoms.
 * So one rank makes the whole of each sum, and the weights have the same bits on any number of
 * ranks.  They also have the same bits on any device if scores are f32.  If matrix units make the
 * scores (N.45), the bits are the same on units that add products in the same way. */
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

enum { TRAIN_HELD_MOST = 65536 }; /* approximate largest number of rows held out of `rows` */

struct train_task {
  const struct row_source *rows;
  const struct row_source *held;   /* held-out rows; NULL: windows of `rows` are held out */
  real held_out_fraction;          /* share of windows to hold out, if `held` is NULL; 0: none */
  const struct atom_source *atoms; /* the first atoms, d = 1; NULL: atoms are drawn at random */
  const real *mean;                /* [p] subtracted from rows, stored with these atoms; NULL:
                                    * none */
  const float *encoder, *bias;     /* [k][p], [k] the first encoder, for rows that are not scaled;
                                    * NULL: it starts as the atoms, with a bias of 0 */
  float threshold;                 /* of `encoder`, if sizes.l0 is not 0 */
  int center;                      /* if no atoms are given: subtract the column means of the
                                    * fitted rows */
  struct train_sizes sizes;        /* p is not read: `rows` has it; dead_rows 0: one epoch */
  uint64_t seed;
  gidx steps;               /* 0: `epochs` is used */
  gidx epochs;              /* used if steps is 0 */
  gidx every;               /* steps between two lines; 0: one epoch */
  idx batch;                /* rows of a step */
  enum precision precision; /* of scores in a step; all but f32 need a GPU */
  struct learning_rate rate;
  gidx beside; /* bytes that the caller holds, for the memory check */
  idx threads;
  const char *variant, *device, *kernels; /* struct device_options */
  const struct train_point *start;        /* resume from here; NULL: begin anew */
};

/* Why the sink gets a point.  TRAIN_LINE: the point has a new line.  TRAIN_STATE: a run can resume
 * from the point; only here does it have the moments of all atoms.  TRAIN_END: all steps are
 * done. */
enum train_reason { TRAIN_LINE, TRAIN_STATE, TRAIN_END };

/* The sink.  Every rank calls point(); the point is valid during the call. */
struct train_sink {
  void *self;
  int (*point)(void *self, const struct train_point *point, enum train_reason why); /* collective */
  struct stops stops;   /* asked before the first step and in each step; STOPS_SAVE is allowed */
  struct stops reading; /* asked while the mean is computed: a stop there ends without a result */
};

enum train_phase {
  TRAIN_START,  /* reading rows for the mean and the hash; held-out rows */
  TRAIN_READ,   /* pools of rows */
  TRAIN_SCORES, /* products with the encoder; without l0 also the choice of codes */
  TRAIN_CODES,  /* errors of codes; with l0 also the choice of codes */
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

/* *fitted, *held <- sources of the fitted and of the held-out rows, valid as long as *split is.
 * ERR_INPUT: as split_open(), or fewer fitted rows than a batch has. */
int train_rows_split(const struct train_task *task, struct row_split *split,
                     struct row_source *fitted, struct row_source *held);

/* Check shapes and sizes before anything large is allocated.  Not collective.  ERR_INPUT,
 * ERR_USAGE. */
int train_task_check(const struct train_task *task);

/* Run the training.  Collective; the same status on every rank.  ERR_INPUT: what train_task_check()
 * refuses; values that are not finite, as when the rate is too high; a start that does not fit the
 * rows.  ERR_DEVICE: also if the matrix units of two ranks, or of the earlier run, add products in
 * different ways.  ERR_MEMORY: usually before any row is read. */
int train_run(const struct train_task *task, struct comm *c, const struct train_sink *sink,
              struct train_result *result);

/* The encoder of a point, for rows of p columns that are not scaled.  It gives a row the `top`
 * largest codes; if z->l0 is not 0, the codes above the threshold.  Fills bias[k] and threshold[k].
 * The encoder borrows both, and the weights of the point. */
struct encoder train_encoder(const struct train_point *point, const struct train_sizes *z, idx p,
                             idx top, float *bias, float *threshold);

#endif
