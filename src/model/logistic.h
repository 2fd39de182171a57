/* SPDX-License-Identifier: BSD-3-Clause
 * Logistic regression of a label on the scores of a few atoms (N.34).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_LOGISTIC_H
#define MODEL_LOGISTIC_H

#include "base/types.h"

enum { LOGISTIC_MOST = 5 };

/* The rows in which at least one of k atoms has a score, and the other rows, whose scores are 0. */
struct logistic_rows {
  int k; /* 1 .. LOGISTIC_MOST */
  gidx listed;
  const float *score;         /* [listed][k] */
  const unsigned char *label; /* [listed] 1 if the row has the label */
  gidx others, others_label;  /* number of other rows; number of other rows with the label */
};

/* weight[k + 1] <- the weights of the scores, and the constant.  They minimise 1/2 |w|^2 plus the
 * sum over rows of log(1 + exp(-y z)), y = +-1, z = w . score + constant, as scikit-learn's
 * LogisticRegression does with C = 1. */
void logistic_fit(const struct logistic_rows *rows, real *weight);

/* z of a row. */
real logistic_score(int k, const real *weight, const float *score);

#endif
