/* SPDX-License-Identifier: BSD-3-Clause
 * Measure how well an encoder's scores of single atoms predict labels of rows (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: runs on one rank, with several threads.
 *
 * A row has few codes, but the encoder computes a score of every atom before it selects codes. */
#ifndef LOOK_PROBING_SCORES_H
#define LOOK_PROBING_SCORES_H

#include "model/encoder.h"
#include "model/probe.h"
#include "model/rows.h"

struct probing_scores_task {
  const struct row_source *rows;
  const struct encoder *encoder; /* its weights are set */
  const real *mean;              /* [p] for a centered encoder; NULL: none is subtracted */
  int threads;
};

/* f1[count] <- for each series the mean, over the probed labels, of F1 on the second half of the
 * rows; NaN if no label is probed.  A label is predicted from the score of one atom with a
 * threshold.  All series[count] are labels of the task's rows; count is at most 3.  All rows are
 * held in memory.  ERR_INPUT: a row or score is not finite, or there are 2^31 rows or more.
 * ERR_MEMORY. */
int probing_scores(const struct probing_scores_task *task, const struct probe_series *series,
                   int count, real *f1);

#endif
