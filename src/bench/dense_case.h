/* SPDX-License-Identifier: BSD-3-Clause
 * A test case for sagitta-bench verify: codes of rows, and the three sparse operations of training.
 * Each operation is computed twice: from lists of codes, and from whole matrices that have zeros
 * where there are no codes (N.42).
 *
 * Floor: bench.  Not collective. */
#ifndef BENCH_DENSE_CASE_H
#define BENCH_DENSE_CASE_H

#include "base/memory.h"
#include "base/types.h"
#include "device/device.h"

/* Sums of atoms, products of errors with atoms, and gradients of atoms, in this order. */
enum dense_operation { DENSE_FORWARD, DENSE_BACK, DENSE_GRADIENT, DENSE_OPERATIONS };

/* Codes of n rows by k atoms of p columns, the matrices that they are multiplied by, and the
 * results of one operation. */
struct dense_case {
  const char *name;
  idx n, k, p;
  gidx entries;
  gidx *start;           /* [n + 1] */
  idx *atom;             /* [entries] */
  float *code;           /* [entries] */
  gidx *begin;           /* [k + 1] where each atom begins in row and value */
  idx *row;              /* [entries] the rows of the codes, sorted by atom */
  float *value;          /* [entries] the codes, in this order, too */
  float *atoms, *error;  /* [k][p], [n][p] */
  float *full;           /* [n][k] the codes as a matrix with zeros */
  float *sparse, *dense; /* results from lists, and from whole matrices */
  struct arena arena;
};

/* The result of a comparison: the number of outputs, how many differ, and the index and the two
 * values of the first that differs. */
struct dense_finding {
  gidx outputs, differ, first;
  float sparse, dense;
};

/* Allocate zeroed arrays for c->n rows, c->k atoms, c->p columns and `entries` codes.  They are in
 * c->arena, which the caller frees. */
int dense_case_alloc(struct dense_case *c, gidx entries);
/* Sort the codes of each row by atom, then fill begin, row, value and full from start, atom and
 * code.  To be called once. */
void dense_case_next(struct dense_case *c);
/* c->sparse <- the operation from lists of codes.  A gradient is added to c->sparse. */
int dense_case_sparse(struct device *dev, struct dense_case *c, enum dense_operation which);
/* c->sparse, c->dense <- the operation in both ways; gradients are added to copies of the atoms.
 * *finding <- the comparison of the two, bit by bit, except that 0 equals -0. */
int dense_case_compare(struct device *dev, struct dense_case *c, enum dense_operation which,
                       struct dense_finding *finding);

#endif
