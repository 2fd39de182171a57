/* SPDX-License-Identifier: BSD-3-Clause
 * The optimal one-to-one assignment of the rows of a matrix of scores to its columns (N.22a).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The sum of the scores of the pairs is the largest possible, exactly: scores are first rounded to
 * integers, in units of 2^-40 of a power of two near the largest score, and all further arithmetic
 * is on integers.  Of several optimal assignments the lexicographically first is chosen, so the
 * pairs depend on the matrix alone. */
#ifndef MODEL_ASSIGNMENT_H
#define MODEL_ASSIGNMENT_H

#include "base/types.h"

/* match[k] <- the column of each row of scores[k][l], or -1; min(k, l) rows have one.  The result
 * does not depend on threads.  ERR_INPUT: a score is not finite.  ERR_MEMORY; if k > l, a copy of
 * the scores is made, too.  Not collective. */
int assignment_solve(idx k, idx l, const float *scores, int threads, idx *match);

/* Reference: shortest augmenting paths over the dense matrix, one row after another. */
int assignment_reference(idx k, idx l, const float *scores, idx *match);

#endif
