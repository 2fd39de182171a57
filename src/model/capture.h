/* SPDX-License-Identifier: BSD-3-Clause
 * Captures, read piece by piece: queries, keys and values of attention, or tokens of a gated delta
 * net, of many sequences.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_CAPTURE_H
#define MODEL_CAPTURE_H

#include "model/attention.h"
#include "model/gated_delta.h"

/* Keys and values as they are stored, for jobs that take all of them.  A unit is a cell; with a
 * pool it is a block of cells. */
enum capture_type { CAPTURE_F32, CAPTURE_F16, CAPTURE_BF16 };
struct capture_cells {
  gidx units;
  idx size;               /* cells per unit; 1 without a pool */
  enum capture_type type; /* of k and v as read() gives them */
  const gidx *first;      /* [sequences] the cell of position 0 of each; NULL with a pool */
  const idx *table;       /* [sequences][width] blocks; NULL without a pool */
  gidx width;
  /* k, v <- units first .. first + count - 1.  NULL: units cannot be read directly.  Not
   * collective. */
  int (*read)(void *self, gidx first, gidx count, void *k, void *v);
};

/* The io floor fills this struct for files.  16-bit floats are widened exactly. */
struct capture_source {
  struct attention attention;
  gidx n;             /* queries of all sequences */
  gidx sequences;     /* at least 1 */
  const gidx *start;  /* [sequences + 1] first query of each; borrowed */
  const gidx *length; /* [sequences] positions of each; borrowed */
  const char *name;   /* borrowed: for messages */
  void *self;         /* borrowed */
  /* q[count][heads][d] <- queries first .. first + count - 1 of all.  Not collective. */
  int (*queries)(void *self, gidx first, idx count, float *q);
  /* k[count][kv_heads][d], v[count][kv_heads][dv] <- positions first .. first + count - 1 of a
   * sequence, wherever they are stored.  Not collective. */
  int (*positions)(void *self, gidx sequence, gidx first, idx count, float *k, float *v);
  struct capture_cells cells; /* its read() is called with self, too */
  /* token[count] <- the tokens of these positions.  NULL: the capture has no tokens. */
  int (*tokens)(void *self, gidx sequence, gidx first, idx count, idx *token);
};

/* Captured tokens of a gated delta net; sequences follow one another. */
struct mixer_source {
  struct gated_delta net;
  gidx n;                 /* tokens of all sequences */
  gidx sequences;         /* at least 1, and fewer than 2^31 */
  const gidx *start;      /* [sequences + 1] first token of each; all arrays here are borrowed */
  const float *conv;      /* [C][width]; NULL: no convolution */
  const float *conv_bias; /* [C]; NULL: none */
  const idx *in, *out;    /* [sequences] slots (N.64); no two sequences write the same one */
  idx slots;              /* of the pool; 0: there is no pool */
  const char *name;       /* for messages */
  void *self;
  /* x[count][C], g[count][heads][decays], beta[count][heads] <- tokens first .. first + count - 1.
   * ERR_INPUT names the value that is out of range; *key <- its token.  Not collective. */
  int (*tokens)(void *self, gidx first, gidx count, float *x, float *g, float *beta, gidx *key);
  /* Only x[count][C] of these tokens. */
  int (*channels)(void *self, gidx first, gidx count, float *x);
  /* s[heads][dv][d], taps[C][width - 1] <- a slot of the pool; NULL: not wanted. */
  int (*state)(void *self, idx slot, float *s, float *taps);
};

#endif
