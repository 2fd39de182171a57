/* SPDX-License-Identifier: BSD-3-Clause
 * Attention of one query row and head, in the order of (N.27), which all implementations follow.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A sequence has positions 0 .. n_kv - 1 and queries 0 .. n_q - 1; the last query is at the last
 * position.  Keys and values are stored in cells.  Position j is in cell j, or with a paged pool in
 * cell table[j / size] size + j mod size.  Cells that a query does not see are never read for it,
 * so they may hold anything. */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "base/types.h"

/* Sizes of (N.27).  Positions are handled in blocks, and blocks start anew in each shard of
 * positions.  An inner product starts a new chain after ATTENTION_CHAIN columns. */
enum {
  ATTENTION_BLOCK = 64,
  ATTENTION_SHARD = 1024,
  ATTENTION_CHAIN = 128,
  MAX_HEAD_COLUMNS = 1024
};

struct attention {
  idx heads, kv_heads; /* kv_heads divides heads */
  idx d, dv;           /* columns of q and k, and of v */
  real scale;          /* of inner products; > 0 */
  real softcap;        /* scores become softcap tanh(score / softcap); 0: they do not */
  int causal;          /* a query at position p sees no later positions */
  gidx window;         /* a query sees only positions nearer than this; 0: no window */
};

/* A query at position p sees positions *from .. *end - 1 of 0 .. n_kv - 1; if *from = *end it sees
 * none.  p may be negative: the query is then before the first position. */
void attention_seen(const struct attention *a, gidx p, gidx n_kv, gidx *from, gidx *end);

/* The float32 factors of (N.27): of inner products before tanh, and of exponents. */
struct attention_factors {
  float inner; /* 0: no tanh */
  float exponent;
};
struct attention_factors attention_factors(const struct attention *a);

/* Keys and values of a sequence. */
struct attention_cells {
  const float *k;   /* [cells][kv_heads][d] */
  const float *v;   /* [cells][kv_heads][dv] */
  const idx *table; /* [ceil(positions / size)] blocks of a pool; NULL: cell j has position j */
  idx size;         /* cells of a block */
};

/* The cell of a position. */
gidx attention_cell(const struct attention_cells *c, gidx position);

/* A sum over some positions: acc[dv] = sum of 2^(x_j - m) v_j and l = sum of 2^(x_j - m). */
struct attention_sum {
  float m, l;
  float *acc; /* borrowed */
};
/* The sum over no positions: m = -infinity; l and acc are +0. */
void attention_sum_begin(const struct attention *a, struct attention_sum *s);
/* s <- the sum over the positions of s and then those of `more`, which is not empty. */
void attention_sum_join(const struct attention *a, struct attention_sum *s,
                        const struct attention_sum *more);
/* out[dv], *lse <- the result of a sum; sees: 1 if the query sees any position. */
void attention_finish(const struct attention *a, const struct attention_sum *s, int sees,
                      float *out, float *lse);

/* Returns u without a softcap, and tanh u with one. */
float attention_cap(const struct attention_factors *factors, float u);
/* u of (N.27) for q[d] and k[d]. */
float attention_score(const struct attention *a, const struct attention_factors *factors,
                      const float *q, const float *k);

/* Reference: s <- query q[d] of a head over positions from .. end - 1. */
void attention_row_sum(const struct attention *a, const struct attention_cells *cells,
                       const float *q, idx head, gidx from, gidx end, struct attention_sum *s);
/* Reference: out[dv], *lse <- query q[d] of a head over positions from .. end - 1. */
void attention_row(const struct attention *a, const struct attention_cells *cells, const float *q,
                   idx head, gidx from, gidx end, float *out, float *lse);

#endif
