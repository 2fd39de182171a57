/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts and sizes that launchers and kernels of gated delta nets (N.60) share.  C11 that is also
 * CUDA C++.
 *
 * Floor: kernels.  Includes forms.h alone.
 *
 * A call has the tokens of many sequences.  mixer_conv makes q, k and v from x; mixer_norm
 * normalises q and k, if l2 is set, scales q, and makes decays; mixer_step moves the states.  The
 * state and the taps of a sequence are read from a slot of the pool.  If another sequence writes
 * that slot, mixer_gather first copies them to scratch, and they are read from there. */
#ifndef MIXER_TYPES_H
#define MIXER_TYPES_H

#include "forms.h"

enum {
  MIXER_LANES = 32,        /* DELTA_LANES of model/gated_delta.h */
  MAX_MIXER_COLUMNS = 256, /* DELTA_COLUMNS */
  MIXER_TEAM = 8,          /* threads of a column of v; each has four of its 32 lanes */
  MIXER_QUAD = 4,
  MIXER_CHUNK = 8,    /* tokens that are copied to shared memory together */
  CONV_THREADS = 128, /* one channel each */
  CONV_TOKENS = 64,   /* tokens of a block */
  CONV_TOGETHER = 8,  /* tokens whose values are read before the first is computed */
  NORM_WARPS = 8,
  COPY_THREADS = 256,
  COPY_FLOATS = 4096 /* floats of a block */
};

/* A sequence of a call. */
struct mixer_sequence {
  long long token; /* its first token */
  int tokens;
  int in, out;     /* slots; in = -1: begin from zero; out = -1: do not keep the state */
  int is_gathered; /* 1: `in` is a slot of scratch */
};

/* A part of a sequence for mixer_conv: tokens first .. first + CONV_TOKENS - 1. */
struct mixer_part {
  int sequence, first;
};

struct mixer_move {
  int from, to;
};

struct mixer_gather_args {
  const float *from; /* [..][floats] */
  float *to;
  const struct mixer_move *moves;
  long long floats;
  int blocks; /* of a move: ceil(floats / COPY_FLOATS) */
};

struct mixer_conv_args {
  const float *x;              /* [tokens][channels] */
  const float *weight;         /* [channels][width] */
  const float *bias;           /* [channels]; null: each bias is +0 */
  float *y;                    /* [tokens][channels] */
  const float *pool, *scratch; /* [..][channels][width - 1] taps that are read */
  float *out;                  /* taps that are written */
  const struct mixer_sequence *sequences;
  const struct mixer_part *parts;
  int channels, width, silu;
  int blocks; /* of a part: ceil(channels / CONV_THREADS) */
};

struct mixer_norm_args {
  const float *y; /* [tokens][channels]: q and k of key heads, then v */
  const float *g; /* [tokens][heads]; by_column [tokens][heads][d] */
  float *q, *k;   /* [tokens][heads_k][mixer_pitch(d)] */
  float *decay;   /* [tokens][heads], by column [tokens][heads][mixer_pitch(d)] */
  long long tokens;
  int channels, heads_k, heads, d;
  int l2, by_column;
  float eps, scale;
};

struct mixer_step_args {
  const float *q, *k, *decay;             /* from mixer_norm */
  const float *v;                         /* [tokens][channels], from the first head on */
  const float *beta;                      /* [tokens][heads] */
  float *o;                               /* [tokens][heads][dv] */
  const float *pool, *scratch;            /* [..][heads][dv][d] states that are read */
  float *out;                             /* states that are written */
  const struct mixer_sequence *sequences; /* the longest first */
  int channels, heads_k, heads, first;    /* heads first .. first + heads - 1 of the net */
  int group, tiled; /* key head of head h: h / group, or, if tiled, h mod heads_k */
};

/* Floats between heads of q: whole pieces of 16 bytes. */
HOST_DEVICE int mixer_pitch(int d)
{
  return (d + MIXER_QUAD - 1) / MIXER_QUAD * MIXER_QUAD;
}

/* Warps of mixer_norm for a token: one per q, per k, and per 32 heads of decays (by_column: one per
 * head). */
HOST_DEVICE int mixer_norm_items(int heads_k, int heads, int by_column)
{
  return 2 * heads_k + (by_column ? heads : (heads + WARP - 1) / WARP);
}

/* The pieces, of four numbers each, that a thread has of the state of each column of v. */
HOST_DEVICE int mixer_pieces(int d)
{
  return (d + MIXER_LANES - 1) / MIXER_LANES;
}

/* One compiled form of mixer_step.cu; its members are the -D options of the same names. */
struct mixer_form {
  int columns; /* COLUMNS of v, per thread */
  int threads; /* THREADS */
  int chunk;   /* CHUNK: tokens */
};

/* many: the number of columns of v, over all heads and sequences.  Moving states by one token is
 * bound by memory.  Moving them by many tokens is bound by instructions; more columns per thread
 * save some, but there must be enough columns to keep every multiprocessor busy. */
HOST_DEVICE struct mixer_form mixer_form_of(int d, int dv, int one_token, long long many,
                                            int multiprocessors)
{
  struct mixer_form f = {1, one_token ? 256 : 128, one_token ? 1 : MIXER_CHUNK};
  long long warps = many * MIXER_TEAM / WARP / multiprocessors;
  while (!one_token && f.columns < 4 && mixer_pieces(d) <= 4 && warps / (2 * f.columns) >= 8)
    f.columns *= 2;
  while (f.threads > WARP && f.threads / 2 / MIXER_TEAM * f.columns >= dv) f.threads /= 2;
  return f;
}

/* Columns of v in a block. */
HOST_DEVICE int mixer_width(int columns, int threads)
{
  return threads / MIXER_TEAM * columns;
}

/* The fewest threads on a multiprocessor.  This number limits the registers of a thread.  For one
 * token many loads must be in flight; for more tokens, more registers are better. */
HOST_DEVICE int mixer_resident(int chunk, int pieces, int by_column)
{
  return chunk > 1 ? 384 : pieces > 4 ? 512 : by_column ? 768 : 1024;
}

/* Shared memory: two stages of q and k, decays, beta and v. */
HOST_DEVICE int mixer_shared_bytes(int d, int by_column, int columns, int threads, int chunk)
{
  int line = mixer_pieces(d) * MIXER_LANES;
  int chunks = (chunk + MIXER_QUAD - 1) / MIXER_QUAD * MIXER_QUAD;
  return 2 * 4 *
         (chunk * (line * (by_column ? 3 : 2) + mixer_width(columns, threads)) +
          chunks * (by_column ? 1 : 2));
}

#endif
