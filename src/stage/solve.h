/* SPDX-License-Identifier: BSD-3-Clause
 * Solving a file's arrow systems on all ranks, batch after batch.
 *
 * Floor: stage.  Knows no files: systems come from a source, solutions go to a sink.
 *
 * A batch is a run of consecutive systems.  Every rank reads its part of it, in one piece; the
 * systems are dealt to the ranks in order of falling work, exchanged, solved, and gathered on rank
 * 0, which writes them; meanwhile the next batch is read.  Only one batch is held, whatever the
 * size of the file; a single system has to fit. */
#ifndef STAGE_SOLVE_H
#define STAGE_SOLVE_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/systems.h"

struct solve_task {
  const struct system_source *systems;
  const struct solution_sink *sink; /* used on rank 0 */
  struct arrow_options options;
  gidx batch; /* rows in a batch, at least one system; changes no bit */
  int threads;
  const char *variant;
};

enum solve_phase {
  SOLVE_READ,
  SOLVE_EXCHANGE,
  SOLVE_SOLVE,
  SOLVE_GATHER,
  SOLVE_WRITE,
  SOLVE_WAIT,
  SOLVE_PHASES
};

enum { ARROW_STATUSES = ARROW_NOT_FINITE + 1 };

struct solve_result {
  gidx counts[ARROW_STATUSES];      /* systems by status */
  gidx first[ARROW_STATUSES];       /* the lowest system of each status, -1: none */
  gidx first_place[ARROW_STATUSES]; /* its failed_at */
  gidx mended, retries;             /* systems that are OK after retries; retries of all */
  gidx batches, memory;             /* memory: bytes of this rank */
  uint64_t fingerprint;             /* of steps and log-determinants */
  struct phase phases[SOLVE_PHASES];
  const char *variant;
};

/* Rows of a batch that pay. */
gidx solve_batch(const struct systems_shape *shape);
/* Batches, and bytes of the most loaded rank, without doing anything. */
int solve_plan(const struct solve_task *task, const struct comm *c, struct solve_result *result);

/* Collective; the same status on every rank. */
int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result);

#endif
