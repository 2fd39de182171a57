/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of attention of one instruction set, as a table.
 *
 * Floor: device.
 *
 * Lanes are positions in inner products, and columns in sums of values; a chain never runs across
 * lanes.  Rows, a query and head each, go through in tiles. */
#ifndef DEVICE_CPU_ATTENTION_LOOPS_H
#define DEVICE_CPU_ATTENTION_LOOPS_H

#include "model/attention.h"

enum { ATTENTION_ROWS = 6, ATTENTION_PAD = 16 };

struct attention_tile {
  struct attention_factors factors;
  idx d, stride;            /* columns of q and k; floats of a row of v and acc, in pads */
  const float *q;           /* [ATTENTION_ROWS][d] */
  const float *k;           /* [blocks][d][ATTENTION_BLOCK] of one head of k, from the shard */
  const float *v;           /* [positions][stride] */
  idx from[ATTENTION_ROWS]; /* what each row sees, counted from the start of the shard; */
  idx end[ATTENTION_ROWS];  /* from == end: nothing */
  float m[ATTENTION_ROWS], l[ATTENTION_ROWS];
  float *acc; /* [ATTENTION_ROWS][stride] */
};

struct attention_loops {
  /* m, l, acc <- the sums over the shard alone. */
  void (*tile)(struct attention_tile *t);
  /* s <- s joined with more (attention_sum_join), of acc[stride]. */
  void (*join)(idx stride, struct attention_sum *s, const struct attention_sum *more);
  /* w[ATTENTION_BLOCK] <- 2^(exponent - m) of q[d] and a block of keys k[d][ATTENTION_BLOCK]. */
  void (*weights)(const struct attention_factors *factors, idx d, const float *q, const float *k,
                  float m, float *w);
  /* out[ATTENTION_BLOCK] <- inner products of an atom's dv columns and a block of values
   * v[dv][ATTENTION_BLOCK], chains in f64. */
  void (*products)(idx dv, const float *atom, const float *v, real *out);
};

#endif
