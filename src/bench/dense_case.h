/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows, and the three operations of training's sparse side on them, each computed by lists
 * of entries and by whole matrices with zeros in the other places (N.42).
 *
 * Floor: bench.  Not collective. */
#ifndef BENCH_DENSE_CASE_H
#define BENCH_DENSE_CASE_H

#include "base/memory.h"
#include "base/types.h"
#include "device/device.h"

/* Sums of atoms, products of errors with atoms, gradients of atoms. */
enum dense_operation { DENSE_FORWARD, DENSE_BACK, DENSE_GRADIENT, DENSE_OPERATIONS };

/* Codes of rows, and what they are multiplied with; then the results of one operation. */
struct dense_case {
  const char *name;
  idx n, k, p;
  gidx entries;
  gidx *start;          /* [n + 1] */
  idx *atom;            /* [entries] */
  float *code;          /* [entries] */
  gidx *begin;          /* [k + 1] the same by atoms: */
  idx *row;             /* [entries] */
  float *value;         /* [entries] */
  float *atoms, *error; /* [k][p], [n][p] */
  float *full;          /* [n][k] the codes with zeros */
  float *sparse, *dense;
  struct arena arena;
};

/* What became of an operation: outputs that differ, and the first of them. */
struct dense_finding {
  gidx outputs, differ, first;
  float sparse, dense;
};

/* Memory for c->n rows, c->k atoms of c->p columns and so many entries, all zero; of the arena,
 * which the caller frees. */
int dense_case_alloc(struct dense_case *c, gidx entries);
/* From start, atom and code the rest: each row by ascending atom, the same by atoms, and full. */
void dense_case_next(struct dense_case *c);
/* c->sparse <- the operation by lists of entries; a gradient is added to what is there. */
int dense_case_sparse(struct device *dev, struct dense_case *c, enum dense_operation which);
/* c->sparse, c->dense <- the operation in both ways, gradients added to the atoms; compared: all
 * bits count, but the sign of 0. */
int dense_case_compare(struct device *dev, struct dense_case *c, enum dense_operation which,
                       struct dense_finding *finding);

#endif
