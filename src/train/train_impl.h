/* SPDX-License-Identifier: BSD-3-Clause
 * The state of a training, which its files share.
 *
 * Floor: train; included by src/train only. */
#ifndef TRAIN_TRAIN_IMPL_H
#define TRAIN_TRAIN_IMPL_H

#include "base/memory.h"
#include "device/device.h"
#include "model/split.h"
#include "train/batches.h"
#include "train/validation.h"
#include "train/step.h"
#include "train/train.h"

/* The task, the numbers that follow from it, the device, and all arrays. */
struct train {
  const struct train_task *task;
  struct comm *c;
  const struct train_sink *sink;
  struct train_result *result;
  struct row_split split;
  struct row_source fitted, held;
  struct train_sizes sizes;
  gidx steps, steps_each, every, step;
  real *mean;      /* [p]; NULL: rows are not centred */
  real *described; /* [p] mean plus learned offset; the same as mean if no offset is learned */
  struct batches batches;
  struct stepper stepper;
  struct train_validation validation;
  struct train_state state;
  struct device device;
  struct train_line *lines; /* [steps / every + 3] */
  gidx count;               /* of lines */
  uint64_t rows_hash, unit; /* struct train_point */
  double begun;             /* seconds */
  struct arena arena;
};

/* Choose the device, check that it and the host have enough memory, and allocate.  Not
 * collective. */
int train_arrays_open(struct train *j);

#endif
