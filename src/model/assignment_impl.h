/* SPDX-License-Identifier: BSD-3-Clause
 * The inside of an assignment, which its solvers and the rule for ties share.
 *
 * Floor: model.
 *
 * The cost of a pair is minus its score as an integer.  The dual variables u and v prove that a
 * matching is optimal:
 *      u_i + v_j <= cost_ij for all pairs, with equality for matched pairs,
 *      if k < l: v_j <= 0 for all columns, and v_j = 0 for columns without a row. */
#ifndef MODEL_ASSIGNMENT_IMPL_H
#define MODEL_ASSIGNMENT_IMPL_H

#include "base/memory.h"

struct assignment {
  idx k, l;            /* 0 < k <= l */
  const float *scores; /* [k][l] finite */
  real scale;          /* a power of two; |score| scale <= 2^40 */
  int threads;
  gidx *u, *v; /* [k], [l] */
  idx *match;  /* [k] column of each row, -1: none yet */
  idx *owner;  /* [l] row of each column, -1: none */
  struct arena *arena;
};

/* The cost of row i and column j: minus the score, rounded to the nearest integer, ties to even. */
static inline gidx assignment_cost(const struct assignment *a, idx i, idx j)
{
  const real round = 0x1.8p52; /* adding it rounds to an integer */
  return -(gidx)((real)a->scores[(gidx)i * a->l + j] * a->scale + round - round);
}

#endif
