/* SPDX-License-Identifier: BSD-3-Clause
 * Solving a file's arrow systems on all ranks, batch after batch.
 *
 * Floor: solve.  Knows no files: systems come from a source, solutions go to a sink.
 *
 * A batch is a run of consecutive systems.  Each rank reads its part of it in one piece.  A rank
 * solves the systems that it read, if the ranks then have about equal work.  Otherwise systems are
 * dealt in order of falling work, and sent to the ranks that solve them.  Results are gathered on
 * rank 0, which writes them while the next batch is solved.  So the job needs memory for two
 * batches, whatever the size of the file; but a single system must fit.
 *
 * To read the job from top to bottom: solve_impl.h (its state), solve.c (the loop over batches),
 * order.c (which rank reads and solves which system), exchange.c (what ranks send each other),
 * files.c (the workers that read and write), layout.c (all memory). */
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
  gidx batch; /* rows per batch, at least one system; changes no bit */
  int threads;
  const char *variant;
  const char *device, *kernels; /* as struct device_options */
  gidx first;                   /* first system to solve; an earlier run solved all lower ones */
  struct stops stops;           /* asked between batches */
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
  FEW_LOST = 26, /* of 53 bits: a system that lost more has less than half of its digits */
};

struct solve_result {
  gidx end;                          /* systems solved by this and earlier runs */
  gidx counts[ARROW_STATUSES];       /* systems by status */
  gidx first[ARROW_STATUSES];        /* the lowest system of each status, -1: none */
  gidx first_offset[ARROW_STATUSES]; /* failed_at of this system */
  gidx mended, retries;              /* systems that are OK after retries; retries of all systems */
  gidx few;                          /* systems that lost more than FEW_LOST bits (N.13l) */
  gidx most_lost, most_lost_at; /* the largest loss in bits; the lowest system with this loss */
  gidx batches, memory;         /* memory: bytes that this rank holds */
  gidx gpu;                     /* bytes of its GPU; 0: none is used */
  uint64_t fingerprint;         /* of steps and log-determinants */
  struct phase phases[SOLVE_PHASES];
  const char *device;                 /* "cpu" or "cuda" */
  char variant[256];                  /* its instruction set, or the GPU's name */
  struct device_counts device_counts; /* of this rank */
};

/* About the number of multiply-adds of all systems. */
double solve_work(const struct systems_shape *shape);

/* The rows that a batch should have for `ranks` ranks. */
gidx solve_batch_rows(const struct systems_shape *shape, int ranks);

/* Forecast the number of batches, and the memory of the rank that takes the most.  A GPU is assumed
 * if device_open() would take one where it is present. */
int solve_plan(const struct solve_task *task, int ranks, struct solve_result *result);

/* Count the outcomes of solutions, and add them to the fingerprint.  Not collective. */
void solve_count(struct solve_result *result, const struct systems_shape *shape,
                 const struct solution_block *block);
/* Rank 0: add the totals of an earlier run to a result. */
void solve_join(struct solve_result *result, const struct solve_result *before);

/* Run the job.  Collective; the same status on every rank. */
int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result);

#endif
