/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: tokens through gated delta nets, (N.60) to (N.64).
 *
 * Floor: device.
 *
 * Results have the bits of model/gated_delta.h, however time and heads are divided into calls, for
 * any thread count and variant.  Nothing here is collective. */
#ifndef DEVICE_MIXER_H
#define DEVICE_MIXER_H

#include "device/device.h"
#include "model/gated_delta.h"

/* The net, and upper limits for all calls. */
struct mixer_plan {
  const struct gated_delta *mixer; /* borrowed while mixer_open() runs */
  idx sequences, slots;
  gidx tokens;
};

/* One call; buffers are as in struct gated_delta_call, read and written on the device's side. */
struct mixer_job {
  struct delta_slots slots; /* host memory */
  const gidx *start;        /* [sequences + 1] host memory: first tokens, ascending from 0 */
  idx first, count;         /* g, beta, s and o hold the heads first .. first + count - 1 only */
  const struct buffer *x, *g, *beta;
  const struct buffer *conv, *conv_bias; /* NULL: no convolution, no bias */
  const struct buffer *s, *taps;         /* the pool of states, written; taps NULL: none */
  const struct buffer *o;                /* written */
  /* For tests: a GPU copies all states to scratch and back in separate kernels; a CPU runs the
   * reference. */
  int unfused;
  /* For measurements on a GPU: take the prepared rows of the previous run, and only make the steps
   * of the states. */
  int is_prepared;
};

/* A mixer on a device. */
struct mixer {
  struct device *device; /* borrowed */
  struct gated_delta net;
  struct mixer_plan most; /* its pointer to the net is NULL */
  /* Numbers of states over all calls.  A state is that of one sequence, with all heads of the call.
   * read: from a slot; written: to a slot; gathered: copied to scratch first, because another
   * sequence writes the slot from which it is read. */
  gidx read, written, gathered;
  unsigned char *way; /* [sequences] enum delta_way of the call; owned */
  idx *owner;         /* [slots] scratch; owned */
  void *state;        /* owned; only the backend looks into it */
};

/* ERR_INPUT: the net is invalid; ERR_DEVICE: the device has no mixers; ERR_MEMORY.  Call
 * mixer_close() also after a failure; it is safe on a zeroed struct. */
int mixer_open(struct mixer *w, struct device *dev, const struct mixer_plan *plan);
void mixer_close(struct mixer *w);
/* Run a call: writes o and the output slots.  ERR_INPUT as in delta_slots_plan().  Returns before a
 * GPU has ended; later work on the device's stream waits for it. */
int mixer_run(struct mixer *w, const struct mixer_job *job);

#endif
