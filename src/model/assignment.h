/* SPDX-License-Identifier: BSD-3-Clause
 * The optimal one-to-one assignment of the rows of a matrix of scores to its columns (N.22a).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The sum of the scores of the pairs is as large as it can be, exactly: scores are rounded to
 * integers first, 2^-40 of a power of two near the largest, and all else is integer arithmetic.  Of
 * several optimal assignments it is the first in lexicographic order, so that the pairs follow from
 * the matrix alone. */
#ifndef MODEL_ASSIGNMENT_H
#define MODEL_ASSIGNMENT_H

#include "base/types.h"

/* match[k] <- the column of each row of scores[k][l], or -1: min(k, l) rows have one.  On so many
 * threads; the result does not depend on them.  ERR_INPUT: a score is not finite; ERR_MEMORY: it
 * takes up to another k l floats.  Not collective. */
int assignment_solve(idx k, idx l, const float *scores, int threads, idx *match);

/* The same, written the obvious way: shortest augmenting paths over the dense matrix, one row after
 * another. */
int assignment_reference(idx k, idx l, const float *scores, idx *match);

#endif
