/* SPDX-License-Identifier: BSD-3-Clause
 * How well an autoencoder describes rows by its own rule, as in other programs: codes and metrics.
 *
 * Floor: encode.  Knows no files.  Not collective: one rank, all its threads.
 *
 * Supports are those of (N.24), or of matching pursuit (N.25); their quality can be compared with
 * the metrics of encode (doc/numerics.md section 7). */
#ifndef ENCODE_FORWARD_H
#define ENCODE_FORWARD_H

#include "comm/comm.h"
#include "model/encoder.h"
#include "model/results.h"
#include "model/rows.h"

struct forward_task {
  const struct row_source *rows;
  const real *mean;   /* [p]; NULL: none */
  const float *atoms; /* [k][p] */
  idx k, p;
  const struct encoder *encoder; /* NULL: matching pursuit */
  idx top;                       /* atoms per row of matching pursuit */
  int stops;                     /* if set, matching pursuit ends when a step adds no atom */
  int threads;
};

/* Fill in the metrics that need codes.  c: of one rank. */
int forward_evaluate(const struct forward_task *task, struct comm *c, struct metrics *m);

#endif
