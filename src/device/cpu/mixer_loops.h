/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of gated delta nets of one instruction set, as a table.
 *
 * Floor: device.
 *
 * Lanes are channels in a convolution and columns of v in a step, so that the chains of (N.60) are
 * in as many accumulators, and no sum runs across lanes. */
#ifndef DEVICE_CPU_MIXER_LOOPS_H
#define DEVICE_CPU_MIXER_LOOPS_H

#include "model/gated_delta.h"

enum { MIXER_COLUMNS = 16 }; /* of v in a task */

/* A token's channels, (N.61). */
struct mixer_channels {
  idx width;
  gidx channels;
  const float *x[DELTA_TAPS]; /* [width] of [channels], oldest first */
  const float *weights;       /* [width][channels] */
  const float *bias;          /* [channels]; NULL: +0 */
  int silu;
  float *y; /* [channels] */
};

/* All tokens of a sequence through some columns of a head, (N.63). */
struct mixer_columns {
  idx d, columns;
  int by_column;
  gidx tokens;
  const float *q, *k, *v; /* of the first token; */
  gidx row;               /* floats from one token's to the next one's, as the next two */
  const float *decay, *beta;
  gidx decay_row, beta_row;
  float *s; /* [d][MIXER_COLUMNS] */
  float *o; /* [columns] of the first token */
  gidx o_row;
};

struct mixer_loops {
  void (*conv)(const struct mixer_channels *c);
  void (*norm)(idx d, float eps, float *x);               /* x[d] <- divided by its norm, (N.62) */
  void (*decays)(gidx count, const float *g, float *out); /* e(g) */
  void (*steps)(const struct mixer_columns *c);
};

#endif
