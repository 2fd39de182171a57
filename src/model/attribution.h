/* SPDX-License-Identifier: BSD-3-Clause
 * What positions and heads of attention contribute to a row's score on an atom (N.28).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A row is the output of attention for a query, all heads side by side.  Its score on an atom is a
 * sum of one contribution per head and position.  A source is a position and a head, with the
 * number position * heads + head.  Lists of the largest contributions are struct top_rows of
 * model/top.h, which has (row, atom) pairs as its atoms, and sources as its rows.  The larger
 * |contribution| comes first; of equal ones the lower position, then the lower head. */
#ifndef MODEL_ATTRIBUTION_H
#define MODEL_ATTRIBUTION_H

#include "model/attention.h"
#include "model/top.h"

/* A query, and its sums over all positions that it sees. */
struct attributed_query {
  const float *q;     /* [heads][d] */
  const float *m, *l; /* [heads] of (N.27), before division */
  gidx from, end;     /* the positions that it sees */
};

/* The weight of a position in a head of a query, exp(attention score - lse), from its u and from m
 * and l of the query in this head (N.27). */
real attribution_weight(const struct attention_factors *factors, float u, float m, float l);

/* Reference: add to a list the contributions to the score on an atom[heads][dv].  *sum <- their
 * sum: a chain over positions for each head, then one over heads. */
void attribution_row(const struct attention *a, const struct attention_cells *cells,
                     const struct attributed_query *query, const float *atom, struct top_rows *top,
                     idx list, real *sum);

#endif
