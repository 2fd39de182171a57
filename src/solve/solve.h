/* SPDX-License-Identifier: BSD-3-Clause
 * Solving a file's arrow systems on all ranks, batch after batch.
 *
 * Floor: solve.  Knows no files: systems come from a source, solutions go to a sink.
 *
 * A batch is a run of consecutive systems.  Every rank reads its part of it, in one piece.  The
 * systems are dealt to the ranks in order of falling work, sent to them, solved, and gathered on
 * rank 0, which writes them; meanwhile the next batch is read.  So memory is that of two batches,
 * whatever the size of the file, but a single system has to fit.
 *
 * To read the job from top to bottom: solve_impl.h (its state), solve.c (the loop over batches),
 * order.c (who reads and solves what), exchange.c (what ranks send each other), files.c (the files
 * worker), layout.c (all memory). */
#ifndef SOLVE_SOLVE_H
#define SOLVE_SOLVE_H

#include "base/phase.h"
#include "base/stop.h"
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
  const char *device, *kernels; /* as struct device_options */
  gidx first;                   /* system: those before it were solved by an earlier run */
  struct stops stops;           /* asked where batches end */
};

enum solve_phase {
  SOLVE_OPEN,
  SOLVE_READ,
  SOLVE_ALLTOALLV,
  SOLVE_SOLVE,
  SOLVE_GATHER,
  SOLVE_WRITE,
  SOLVE_WAIT,
  SOLVE_PHASES
};

enum {
  ARROW_STATUSES = ARROW_NOT_FINITE + 1,
  FEW_LOST = 26, /* of 53 bits: with more, less than half of the digits is left */
};

struct solve_result {
  gidx end; /* behind the last system that is solved: all, unless it was asked to stop */
  gidx counts[ARROW_STATUSES];       /* systems by status */
  gidx first[ARROW_STATUSES];        /* the lowest system of each status, -1: none */
  gidx first_offset[ARROW_STATUSES]; /* its failed_at */
  gidx mended, retries;              /* systems that are OK after retries; retries of all */
  gidx few;                          /* systems that lost more than FEW_LOST bits (N.13l) */
  gidx most_lost, most_lost_at;      /* the most bits, and the lowest system that lost them */
  gidx batches, memory;              /* memory: bytes that this rank holds */
  gidx gpu;                          /* bytes of its GPU; 0: none is used */
  uint64_t fingerprint;              /* of steps and log-determinants */
  struct phase phases[SOLVE_PHASES];
  const char *device;                 /* "cpu" or "cuda" */
  char variant[256];                  /* its instruction set, or the GPU's name */
  struct device_counts device_counts; /* of this rank */
};

/* Multiply-adds of all systems, about. */
double solve_work(const struct systems_shape *shape);

/* How many rows a batch of so many ranks should have. */
gidx solve_batch_rows(const struct systems_shape *shape, int ranks);

/* Forecast batches and memory, the latter of the rank that holds most, without doing anything; as
 * if a GPU were there, unless the task's device is "cpu". */
int solve_plan(const struct solve_task *task, int ranks, struct solve_result *result);

/* Count a solution: where it is and what became of it, and the fingerprint.  Not collective. */
void solve_count(struct solve_result *result, const struct systems_shape *shape,
                 const struct solution_block *block);
/* Add to a result, on rank 0, what an earlier run has solved. */
void solve_join(struct solve_result *result, const struct solve_result *before);

/* Collective; the same status on every rank. */
int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result);

#endif
