/* SPDX-License-Identifier: BSD-3-Clause
 * One atom's K = 1 arrow system and its solution (N.7 to N.15).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 *     [ diag(H_i + ridge_t I)   B               ] [ t ]       [ g  ]
 *     [          B'             C + ridge_b I   ] [ b ]  =  - [ hb ]
 *
 * H_i is d x d, B_i is d x k, C is k x k, one row block for each of n rows.  Blocks are stored one
 * after another, each column-major, as systems.h5 holds them; of H_i and C only the lower triangles
 * are read.  k = 0 and n = 0 are legal. */
#ifndef MODEL_ARROW_H
#define MODEL_ARROW_H

#include "base/log_pair.h"
#include "base/types.h"

enum {
  ARROW_ROW_MOST = 8,       /* d is 1 .. this */
  ARROW_BORDER_MOST = 1024, /* k is 0 .. this */
  ARROW_RETRIES_MOST = 22,
};

struct arrow_system {
  idx d, k;
  gidx n;
  const real *h;  /* [n][d d] */
  const real *b;  /* [n][d k] */
  const real *g;  /* [n][d] */
  const real *c;  /* [k k] */
  const real *hb; /* [k] */
};

struct arrow_options {
  real ridge_t, ridge_b; /* >= 0, added to every row block and to C */
  int escalate;          /* try a failed system again with larger ridges (N.15) */
};

enum arrow_status {
  ARROW_OK,
  ARROW_ROW_NOT_PD,   /* failed_at: the lowest row whose block has a bad pivot */
  ARROW_SCHUR_NOT_PD, /* failed_at: the pivot of S */
  ARROW_NOT_FINITE, /* failed_at: flat index of the first such entry, in the order H, B, g, C, hb */
};

/* What became of a system.  Where it failed: steps +0, log_det NaN, pair (NaN, 0). */
struct arrow_outcome {
  int status;            /* of the last try */
  gidx failed_at;        /* -1 where OK */
  real suggested_bump;   /* N.14, N.15: what to add to the ridges; 0 where OK or not finite */
  real ridge_t, ridge_b; /* of the last try */
  real addition;         /* a_r of N.15 in the last try, 0 where the ridges are the options' own */
  idx retries;
  struct log_pair pair; /* of the determinant, ridges included (N.13) */
  real log_det;
};

/* Where an escalation goes on: the addition of the first try, and the retries before it.  All 0:
 * a fresh system.  With addition a, the next one is fl(10 a), whatever fails. */
struct arrow_start {
  real addition;
  idx retries;
};

/* Reference: step_t[n][d], step_b[k] and the outcome.  work has arrow_work(d, k) reals.
 * Any NaN that is written is 0x7FF8000000000000. */
gidx arrow_work(idx d, idx k);
void arrow_reference(const struct arrow_system *s, const struct arrow_options *options,
                     struct arrow_start start, real *step_t, real *step_b,
                     struct arrow_outcome *out, real *work);

/* "ok", "row not positive definite", ... for reports. */
const char *arrow_status_name(int status);

#endif
