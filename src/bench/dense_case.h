/* SPDX-License-Identifier: BSD-3-Clause
 * A test case for sagitta-bench verify: codes of rows, and the three sparse operations of training.
 * Each is computed from lists of entries, and from whole matrices with zeros in the other places
 * (N.42).
 *
 * Floor: bench.  Not collective. */
#ifndef BENCH_DENSE_CASE_H
#define BENCH_DENSE_CASE_H

#include "base/memory.h"
#include "base/types.h"
#include "device/device.h"

/* Sums of atoms, products of errors with atoms, and gradients of atoms, in this order. */
enum dense_operation { DENSE_FORWARD, DENSE_BACK, DENSE_GRADIENT, DENSE_OPERATIONS };

/* The codes, the matrices that they are multiplied with, and the results of one operation. */
struct dense_case {
  const char *name;
  idx n, k, p;
  gidx entries;
  gidx *start;          /* [n + 1] */
  idx *atom;            /* [entries] */
  float *code;          /* [entries] */
  gidx *begin;          /* [k + 1] the same codes, sorted by atom: */
  idx *row;             /* [entries] */
  float *value;         /* [entries] */
  float *atoms, *error; /* [k][p], [n][p] */
  float *full;          /* [n][k] the codes as a matrix with zeros */
  float *sparse, *dense;
  struct arena arena;
};

/* The result of a comparison: how many outputs differ, and the first of them. */
struct dense_finding {
  gidx outputs, differ, first;
  float sparse, dense;
};

/* Allocate arrays for c->n rows, c->k atoms, c->p columns and `entries` codes, all zero.  They are
 * in c->arena, which the caller frees. */
int dense_case_alloc(struct dense_case *c, gidx entries);
/* Fill the other arrays from start, atom and code: sort each row by atom, then set the codes by
 * atom, and full. */
void dense_case_next(struct dense_case *c);
/* c->sparse <- the operation by lists of entries.  A gradient is added to what c->sparse has. */
int dense_case_sparse(struct device *dev, struct dense_case *c, enum dense_operation which);
/* c->sparse, c->dense <- the operation in both ways, gradients added to the atoms.  The two are
 * compared bit by bit, but 0 equals -0. */
int dense_case_compare(struct device *dev, struct dense_case *c, enum dense_operation which,
                       struct dense_finding *finding);

#endif
