/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of gated delta nets of one instruction set, as a table.
 *
 * Floor: device.
 *
 * Lanes of a vector are channels in a convolution, and columns of v in a step.  So the 32 chains of
 * (N.60) are in separate accumulators, and no sum crosses lanes. */
#ifndef DEVICE_CPU_MIXER_LOOPS_H
#define DEVICE_CPU_MIXER_LOOPS_H

#include "model/gated_delta.h"

enum { MIXER_COLUMNS = 16 }; /* columns of v in a task */

/* The channels of a token (N.61). */
struct mixer_channels {
  idx width;
  gidx channels;
  const float *x[DELTA_TAPS]; /* [width] of [channels], oldest first */
  const float *weights;       /* [width][channels] */
  const float *bias;          /* [channels]; NULL: +0 */
  int silu;
  float *y; /* [channels] */
};

/* Some columns of a head's state, over all tokens of a sequence (N.63). */
struct mixer_columns {
  idx d, columns;
  int by_column;
  gidx tokens;
  const float *q, *k, *v; /* of the first token */
  gidx row;               /* floats between tokens in q, k and v */
  const float *decay, *beta;
  gidx decay_row, beta_row;
  float *s; /* [d][MIXER_COLUMNS] */
  float *o; /* [columns] of the first token */
  gidx o_row;
};

struct mixer_loops {
  void (*conv)(const struct mixer_channels *c);
  void (*norm)(idx d, float eps, float *x);               /* x[d] <- x divided by its norm (N.62) */
  void (*decays)(gidx count, const float *g, float *out); /* out <- e(g) */
  void (*steps)(const struct mixer_columns *c);
};

#endif
