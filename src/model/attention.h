/* SPDX-License-Identifier: BSD-3-Clause
 * Attention of one query row and head, in the one order of (N.27) that every path keeps.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A sequence has positions 0 .. n_kv - 1 and queries 0 .. n_q - 1, of which the last stands at the
 * last position.  Keys and values lie in cells, position j in cell j, or in a paged pool in cell
 * table[j / size] size + j mod size.  Cells that a query does not see are never used, so they may
 * hold anything. */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include "base/types.h"

/* Positions come in blocks, and every shard of them begins anew; so does the chain of an inner
 * product behind so many columns; (N.27). */
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
  real softcap;        /* scores become softcap tanh(score / softcap); 0: they stay */
  int causal;          /* a query at position p sees none beyond p */
  gidx window;         /* nor those whose distance from p is this or more; 0: no window */
};

/* What a query at position p (negative: before the first) sees of so many: *from .. *end - 1,
 * nothing where *from == *end. */
void attention_seen(const struct attention *a, gidx p, gidx n_kv, gidx *from, gidx *end);

/* The float32 factors of (N.27): of inner products before tanh, and of what becomes exponents. */
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

/* The cell that has a position. */
gidx attention_cell(const struct attention_cells *c, gidx position);

/* A sum over some positions: acc[dv] = sum of 2^(x_j - m) v_j and l = sum of 2^(x_j - m). */
struct attention_sum {
  float m, l;
  float *acc; /* borrowed */
};
/* Before the first position: m = -infinity, all else +0. */
void attention_sum_begin(const struct attention *a, struct attention_sum *s);
/* s <- s and the positions that follow it; `more` is not empty. */
void attention_sum_join(const struct attention *a, struct attention_sum *s,
                        const struct attention_sum *more);
/* out[dv], *lse <- the result of a sum; sees: whether it has any position. */
void attention_finish(const struct attention *a, const struct attention_sum *s, int sees,
                      float *out, float *lse);

/* An inner product, or its tanh. */
float attention_cap(const struct attention_factors *factors, float u);
/* A position's u of (N.27), of q[d] and k[d]. */
float attention_score(const struct attention *a, const struct attention_factors *factors,
                      const float *q, const float *k);

/* Reference: s <- query q[d] of a head over positions from .. end - 1. */
void attention_row_sum(const struct attention *a, const struct attention_cells *cells,
                       const float *q, idx head, gidx from, gidx end, struct attention_sum *s);
/* Reference: out[dv], *lse <- query q[d] of a head over positions from .. end - 1. */
void attention_row(const struct attention *a, const struct attention_cells *cells, const float *q,
                   idx head, gidx from, gidx end, float *out, float *lse);

#endif
