/* SPDX-License-Identifier: BSD-3-Clause
 * A starting dictionary from rows.
 *
 * Floor: stage.  Knows no files: rows come from a source, atoms go to a sink.
 *
 * Rows are gone through in the order of draw.h.  Skipped are those that are zero, those that equal
 * one taken before, and, inside a frame, those that depend on its vectors so far.  Atom a is the
 * a-th row taken, scaled to unit norm; a frame is d rows taken, made orthonormal in order. */
#ifndef STAGE_SEED_H
#define STAGE_SEED_H

#include "base/types.h"
#include "comm/comm.h"
#include "model/rows.h"
#include "model/sink.h"

struct seed_task {
  const struct row_source *rows;
  const real *mean;               /* [p] subtracted from rows first; NULL: none */
  const struct matrix_sink *sink; /* atoms [k][d][p]; used on rank 0 */
  idx k, d;
  uint64_t seed;
};

struct seed_result {
  uint64_t fingerprint;
  gidx taken, zero, repeated, dependent; /* rows */
};

/* Collective.  result is set on rank 0.  ERR_INPUT when the rows do not suffice, with the
 * counts. */
int seed_run(const struct seed_task *task, struct comm *c, struct seed_result *result);

#endif
