/* SPDX-License-Identifier: BSD-3-Clause
 * What a dictionary explains of rows that it was not fitted to.
 *
 * Floor: fit. */
#ifndef FIT_JUDGE_H
#define FIT_JUDGE_H

#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/rows.h"

struct judge_task {
  const struct row_source *rows; /* none: the result is NaN and 0 */
  const struct atom_source *atoms;
  const real *mean; /* [p] subtracted from the rows; NULL: none */
  idx top_s, rounds, threads;
  int nonnegative;
  const char *variant, *filter;
};

/* *explained, on rank 0 <- the explained variance of the rows, routed and coded without penalty.
 * *hash <- of the rows (model/identity.h).  ERR_INPUT as encode_run(), and where rows do not vary.
 * Collective; the same status on every rank. */
int judge_rows(const struct judge_task *task, struct comm *c, real *explained, uint64_t *hash);

#endif
