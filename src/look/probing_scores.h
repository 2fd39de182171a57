/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of an encoder and a label for each row -> how well single atoms tell labels (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: one rank, all its threads.
 *
 * Beside codes, of which rows have few, a score is there for every row and atom: what an encoder
 * computes before it selects. */
#ifndef LOOK_PROBING_SCORES_H
#define LOOK_PROBING_SCORES_H

#include "model/encoder.h"
#include "model/probe.h"
#include "model/rows.h"

struct probing_scores_task {
  const struct row_source *rows;
  const struct encoder *encoder; /* with its weights */
  const real *mean;              /* [p] of a centered encoder; NULL: nothing is subtracted */
  int threads;
};

/* f1[series] <- means over the labels that are probed of F1 on the second half, of one atom and a
 * threshold each; NaN where there are none.  series[count] are of the same rows.  All rows are held
 * in memory.  ERR_INPUT: rows or scores that are not finite; ERR_MEMORY. */
int probing_scores(const struct probing_scores_task *task, const struct probe_series *series,
                   int count, real *f1);

#endif
