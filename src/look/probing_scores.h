/* SPDX-License-Identifier: BSD-3-Clause
 * From scores of an encoder and labels of rows to how well single atoms predict the labels (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: one rank, all its threads.
 *
 * A row has few codes, but a score for every atom: the encoder computes it before it selects
 * codes. */
#ifndef LOOK_PROBING_SCORES_H
#define LOOK_PROBING_SCORES_H

#include "model/encoder.h"
#include "model/probe.h"
#include "model/rows.h"

struct probing_scores_task {
  const struct row_source *rows;
  const struct encoder *encoder; /* with its weights */
  const real *mean;              /* [p] for a centered encoder; NULL: none is subtracted */
  int threads;
};

/* f1[series] <- F1 on the second half of one atom with a threshold, means over the probed labels;
 * NaN if there are none.  All series[count] are of the same rows.  All rows are held in memory.
 * ERR_INPUT: rows or scores that are not finite; ERR_MEMORY. */
int probing_scores(const struct probing_scores_task *task, const struct probe_series *series,
                   int count, real *f1);

#endif
