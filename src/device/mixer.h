/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: tokens through gated delta nets, (N.60) to (N.64).
 *
 * Floor: device.
 *
 * Results have the bits of model/gated_delta.h for any cut of time or heads, thread count and
 * variant.  Nothing here is collective. */
#ifndef DEVICE_MIXER_H
#define DEVICE_MIXER_H

#include "device/device.h"
#include "model/gated_delta.h"

/* What calls have at most. */
struct mixer_plan {
  const struct gated_delta *mixer; /* borrowed while mixer_open() runs */
  idx sequences, slots;
  gidx tokens;
};

/* One call; buffers are as in struct gated_delta_call, read and written on the device's side. */
struct mixer_job {
  struct delta_slots slots; /* of the host, as is start */
  const gidx *start;        /* [sequences + 1] rising from 0 */
  idx first, count;         /* heads, of which alone g, beta, s and o are */
  const struct buffer *x, *g, *beta;
  const struct buffer *conv, *conv_bias; /* NULL: without */
  const struct buffer *s, *taps;         /* the pool, which is written, as is o; taps NULL: none */
  const struct buffer *o;
  int unfused; /* gather, convolution, norm, step and scatter one after another: for tests */
  /* States alone move, where a backend can, by the rows of the run before: for measurements. */
  int is_prepared;
};

/* A mixer as the device has it. */
struct mixer {
  struct device *device; /* borrowed */
  struct gated_delta net;
  struct mixer_plan most; /* without its net */
  /* States of a sequence and all heads of a call: read from a slot, written to one, and gathered to
   * scratch before that, of all calls. */
  gidx read, written, gathered;
  unsigned char *way; /* [sequences] enum delta_way of the call; owned */
  idx *owner;         /* [slots] scratch; owned */
  void *state;        /* owned; only the backend looks into it */
};

/* ERR_INPUT: the net is none; ERR_DEVICE: the device has no kernel for it; ERR_MEMORY.
 * mixer_close() follows also when this fails, and is safe on a zeroed struct. */
int mixer_open(struct mixer *w, struct device *dev, const struct mixer_plan *plan);
void mixer_close(struct mixer *w);
/* o and the slots that are written <- a call.  ERR_INPUT as of delta_slots_plan().  Not waited for:
 * what comes after it on the device's stream is. */
int mixer_run(struct mixer *w, const struct mixer_job *job);

#endif
