/* SPDX-License-Identifier: BSD-3-Clause
 * Rows from a gated delta net.  Ranks divide the sequences of a block of tokens, then the heads;
 * rank 0 writes the block, and at the end the states that are kept.
 *
 * Floor: harvest.  Knows no files: captures come from a source, rows and states go to a sink. */
#ifndef HARVEST_MIXER_H
#define HARVEST_MIXER_H

#include "comm/comm.h"
#include "device/device.h"
#include "model/capture.h"

struct mixer_sink {
  void *self; /* borrowed */
  /* rows[count][heads dv]; blocks come in ascending order. */
  int (*rows)(void *self, gidx first, gidx count, const float *rows);
  /* s[heads][dv][d], taps[channels][width - 1] of a slot.  Called for every slot in ascending
   * order, if any sequence keeps its state. */
  int (*state)(void *self, idx slot, const float *s, const float *taps);
};

struct mixer_task {
  const struct mixer_source *capture; /* borrowed, like the next two */
  struct device *device;
  const struct mixer_sink *sink; /* on rank 0 */
  idx block;                     /* tokens of all ranks at a time; 0: chosen */
};

struct mixer_result {
  idx kept;             /* number of slots in which a sequence keeps its state */
  uint64_t fingerprint; /* of the rows; on rank 0 */
};

/* Approximate multiply-adds of all rows. */
double mixer_work(const struct mixer_source *capture);
/* ERR_DEVICE if the device has no kernel for this net.  Not collective. */
int mixer_device_check(const struct mixer_source *capture, struct device *device);
/* The number of slots in which a sequence keeps its state. */
idx mixer_kept(const struct mixer_source *capture);
/* Compute all rows and states by (N.60) to (N.64).  The bits do not depend on block, device or
 * ranks.  ERR_INPUT names the lowest token with a value that is not finite or out of range.
 * Collective; the same status on every rank. */
int mixer_rows_run(struct comm *c, const struct mixer_task *task, struct mixer_result *result);

#endif
