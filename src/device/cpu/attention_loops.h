/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of attention of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A row is a query and a head; rows are handled in tiles.  Lanes are positions in inner products,
 * and columns in sums of values; no chain crosses lanes. */
#ifndef DEVICE_CPU_ATTENTION_LOOPS_H
#define DEVICE_CPU_ATTENTION_LOOPS_H

#include "model/attention.h"

enum { ATTENTION_ROWS = 6, ATTENTION_PAD = 16 };

struct attention_tile {
  struct attention_factors factors;
  idx d, stride;  /* columns of q and k; floats of a row of v and acc, with padding */
  const float *q; /* [ATTENTION_ROWS][d] */
  const float *k; /* [blocks][d][ATTENTION_BLOCK] the shard's keys for one head of k */
  const float *v; /* [positions][stride] */
  /* Each row sees positions from .. end - 1, counted from the start of the shard; if from == end,
   * it sees none. */
  idx from[ATTENTION_ROWS];
  idx end[ATTENTION_ROWS];
  float m[ATTENTION_ROWS], l[ATTENTION_ROWS];
  float *acc; /* [ATTENTION_ROWS][stride] */
};

struct attention_loops {
  /* m, l, acc <- the sums over this shard alone. */
  void (*tile)(struct attention_tile *t);
  /* Add `more` to s, as attention_sum_join(); acc has `stride` floats. */
  void (*join)(idx stride, struct attention_sum *s, const struct attention_sum *more);
  /* w[ATTENTION_BLOCK] <- 2^(e - m) for q[d] and a block of keys k[d][ATTENTION_BLOCK]; e is the
   * exponent of the pair by (N.27). */
  void (*weights)(const struct attention_factors *factors, idx d, const float *q, const float *k,
                  float m, float *w);
  /* out[ATTENTION_BLOCK] <- inner products of an atom's dv columns and a block of values
   * v[dv][ATTENTION_BLOCK], chains in f64. */
  void (*products)(idx dv, const float *atom, const float *v, real *out);
};

#endif
