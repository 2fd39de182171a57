/* SPDX-License-Identifier: BSD-3-Clause
 * A gated delta net (N.60) to (N.64): each sequence and head has a matrix, its state, which each
 * token changes.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A token has C = 2 heads_k d + heads dv channels: q of all key heads, k of all key heads, v of all
 * heads.  Before the convolution the channels are x; after the convolution and the norm they are a
 * row of q, k and v.  The state of a head is S[dv][d], key index fastest.  The taps of a channel
 * are the width - 1 values of x before the sequence's next token, oldest first. */
#ifndef MODEL_GATED_DELTA_H
#define MODEL_GATED_DELTA_H

#include "base/types.h"

enum { DELTA_LANES = 32, DELTA_COLUMNS = 256, DELTA_TAPS = 8 };

struct gated_delta {
  idx heads_k, heads; /* heads_k divides heads */
  idx d, dv;          /* columns of q and k, and of v: 1 .. DELTA_COLUMNS */
  /* of the convolution, 2 .. DELTA_TAPS; 0: x is already convolved, and there are no taps */
  idx width;
  int silu;         /* applied after the convolution; 0: not */
  int tiled;        /* head h has key head h mod heads_k; 0: h div (heads / heads_k) */
  int by_column;    /* a decay per key column; 0: one per head */
  int l2;           /* q and k are divided by their norms; 0: they are not */
  float eps, scale; /* of (N.62) */
};
/* ERR_INPUT gives the numbers if a member is out of its range. */
int gated_delta_check(const struct gated_delta *m);
/* gated_delta_channels() returns C; gated_delta_decays() the number of decays of a head per token;
 * gated_delta_key_head() the key head of a head. */
gidx gated_delta_channels(const struct gated_delta *m);
idx gated_delta_decays(const struct gated_delta *m);
idx gated_delta_key_head(const struct gated_delta *m, idx head);

/* (N.60): the inner product of x[n] and y[n], summed in 32 lanes; lanes are then added pairwise. */
float gated_delta_lanes(const float *x, const float *y, idx n);
/* e(z) = 2^fl(z log2 e) */
float gated_delta_exp(float z);
/* (N.61): the convolution of one channel.  x[width]: the last values, oldest first; taps[width]:
 * the weights. */
float gated_delta_conv(const struct gated_delta *m, const float *x, const float *taps, float bias);
/* (N.62): q and k of all key heads of a row, in place. */
void gated_delta_norm(const struct gated_delta *m, float *row);
/* (N.63): update the state s[dv][d] of a head by one token; o[dv] <- the output.  g: [d] or [1]. */
void gated_delta_step(const struct gated_delta *m, const float *q, const float *k, const float *v,
                      const float *g, float beta, float *s, float *o);

/* (N.64): how a sequence's state comes from its slot. */
enum delta_way {
  DELTA_DIRECT, /* no other sequence writes the slot that it reads, or it reads none */
  /* another sequence writes the slot that it reads: its state is copied to scratch before any slot
   * is written */
  DELTA_GATHERED
};
struct delta_slots {
  idx sequences, slots;
  /* [sequences] a slot; in = -1: the state begins from zero; out = -1: it is not kept */
  const idx *in, *out;
};
/* way[sequences] <- the enum delta_way of each sequence; *gathered <- the number of DELTA_GATHERED
 * ones.  owner[slots] is work space.  ERR_INPUT names a slot that is not in the pool, or that two
 * sequences write. */
int delta_slots_plan(const struct delta_slots *s, unsigned char *way, idx *owner, idx *gathered);

/* The tokens of all sequences, one sequence after another, for heads first .. first + count - 1.
 * g, beta, s and o have only these heads; the other arrays have all channels. */
struct gated_delta_call {
  struct delta_slots slots;
  idx first, count;
  const gidx *start;      /* [sequences + 1] rising from 0 */
  const float *x;         /* [tokens][C] */
  const float *conv;      /* [C][width], oldest tap first; NULL: no convolution */
  const float *conv_bias; /* [C]; NULL: +0 */
  const float *g;         /* [tokens][count] or [tokens][count][d] */
  const float *beta;      /* [tokens][count] */
  float *s;               /* [slots][count][dv][d] the pool */
  float *taps;            /* [slots][C][width - 1] */
  float *o;               /* [tokens][count][dv] */
};
/* Reference: compute o, and the slots that are written.  Every state is read from the pool as it
 * was before the call.  ERR_INPUT, ERR_MEMORY. */
int gated_delta_run(const struct gated_delta *m, const struct gated_delta_call *c);

#endif
