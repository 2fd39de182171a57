/* SPDX-License-Identifier: BSD-3-Clause
 * Encoding: rows and a dictionary in, routed supports, codes and metrics out.
 *
 * Floor: stage.  Knows no files: rows come from a source, supports go to a sink.
 *
 * A block of rows is read in shares, gathered, scored by every rank on its own tiles, exchanged and
 * merged so that each rank has the supports of its share, coded, gathered on rank 0 and written.
 * Rounds (N.3r) repeat the middle on residuals.  Two blocks take turns: one is merged while the
 * other is scored, and a third is read. */
#ifndef STAGE_ENCODE_H
#define STAGE_ENCODE_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/dictionary.h"
#include "model/results.h"
#include "model/rows.h"

struct encode_task {
  const struct row_source *rows;
  const struct atom_source *atoms;
  const real *mean;                /* [p] subtracted from rows; NULL: none */
  const struct support_sink *sink; /* used on rank 0 */
  idx top_s;                       /* 1 .. min(TOP_S_MOST, K) */
  idx rounds;                      /* >= 1 */
  idx tile, block, threads;
  const char *device, *variant; /* as struct device_options */
  const char *kernels, *filter;
  int codes; /* solve them; needed when rounds > 1 */
  int normalize;
  real rho;
  idx cosine_most; /* largest K for which the decoder cosine is computed */
};

enum encode_phase {
  PHASE_OPEN, /* until the device has its memory and own tiles */
  PHASE_LOAD, /* own tiles: reading and checking */
  PHASE_READ,
  PHASE_COPY,
  PHASE_GATHER,
  PHASE_ROUTE,
  PHASE_EXCHANGE, /* lists to the ranks of their rows */
  PHASE_MERGE,
  PHASE_FETCH,
  PHASE_CODES,
  PHASE_COLLECT, /* results to rank 0 */
  PHASE_METRICS,
  PHASE_SUMS,
  PHASE_COSINE,
  PHASE_WRITE,
  PHASE_WAIT, /* for reading and writing */
  PHASE_LATE, /* for merging, counting and column sums, after the routing that they run behind */
  ENCODE_PHASES
};

struct encode_result {
  struct metrics metrics; /* on rank 0 */
  gidx *density;          /* [K], owned */
  uint64_t fingerprint;   /* of supports, scores and codes */
  struct phase phases[ENCODE_PHASES];
  const char *device; /* of this rank: "cpu" or "cuda" */
  char variant[64];   /* its instruction set or name */
  struct device_counts counts;
  struct filter_counts filter; /* of routing rows, this rank */
};

/* Memory of one rank, bytes. */
struct encode_memory {
  gidx dictionary, rows, lists, codes, table;
  idx wanted, kept; /* atoms that a share of a block may want, and that a table may keep */
};
void encode_memory(const struct encode_task *task, int ranks, struct encode_memory *m);

/* Multiply-adds of the routing, ranks together. */
double encode_work(const struct encode_task *task);

/* Rows a block that pay and fit: what `block = 0` means.  The result does not depend on it. */
idx encode_block(const struct encode_task *task, int ranks);

/* Collective; the same status on every rank. */
int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result);
void encode_free(struct encode_result *result);

#endif
