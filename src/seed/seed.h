/* SPDX-License-Identifier: BSD-3-Clause
 * A starting dictionary from rows.
 *
 * Floor: seed.  Knows no files: rows come from a source, atoms go to a sink.
 *
 * Rows are taken in the order of draw.h.  A row is skipped if it is zero, or equals an accepted
 * row, or depends linearly on the vectors of its frame so far.  Atom a is the a-th accepted row,
 * scaled to unit norm.  A frame is d accepted rows, made orthonormal in order. */
#ifndef SEED_SEED_H
#define SEED_SEED_H

#include "base/types.h"
#include "comm/comm.h"
#include "model/rows.h"
#include "model/sink.h"

struct seed_task {
  const struct row_source *rows;
  const real *mean;               /* [p] subtracted from rows; NULL: none */
  const struct matrix_sink *sink; /* atoms [k][d][p]; used on rank 0 */
  idx k, d;
  uint64_t seed;
};

struct seed_result {
  uint64_t fingerprint;
  gidx accepted, zero, repeated, dependent; /* rows */
};

/* Collective.  result is set on rank 0.  ERR_INPUT, with the counts, if too few rows can be
 * accepted. */
int seed_run(const struct seed_task *task, struct comm *c, struct seed_result *result);

#endif
