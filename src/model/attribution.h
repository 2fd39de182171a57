/* SPDX-License-Identifier: BSD-3-Clause
 * What the positions and heads of attention contribute to a row's score on an atom (N.28).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A row is what a query sees, all heads side by side, and its score on an atom is a sum of a
 * contribution of each head at each position.  A source is a position and a head, numbered
 * position heads + head.  Lists of the largest contributions are those of model/top.h, with a pair
 * of a row and an atom in the place of an atom, and sources in that of rows: the larger size comes
 * first, of equal ones the lower position, then the lower head. */
#ifndef MODEL_ATTRIBUTION_H
#define MODEL_ATTRIBUTION_H

#include "model/attention.h"
#include "model/top.h"

/* A query, and its sums over all that it sees. */
struct attributed_query {
  const float *q;     /* [heads][d] */
  const float *m, *l; /* [heads] of (N.27), before division */
  gidx from, end;     /* the positions that it sees */
};

/* The share of a position in a head of a query: exp(score - lse), from its u. */
real attribution_weight(const struct attention_factors *factors, float u, float m, float l);

/* Reference: add the contributions to the score on an atom[heads][dv] to a list; *sum <- all of
 * them, a chain over positions for each head, and one over heads. */
void attribution_row(const struct attention *a, const struct attention_cells *cells,
                     const struct attributed_query *query, const float *atom, struct top_rows *top,
                     idx list, real *sum);

#endif
