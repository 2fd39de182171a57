/* SPDX-License-Identifier: BSD-3-Clause
 * A synthetic world: each rank has all features, and makes its part of each block of rows.
 *
 * Floor: synth.  Knows no files: results go to sinks, on rank 0.  Formulas: (N.31). */
#ifndef SYNTH_WORLD_H
#define SYNTH_WORLD_H

#include "base/memory.h"
#include "base/worker.h"
#include "comm/comm.h"
#include "model/results.h"
#include "model/sink.h"
#include "model/world.h"

struct world_task {
  struct world world; /* the members that world_check() checks; the job fills in the rest */
  gidx first, n;      /* rows of the world */
  idx block;          /* rows made at a time; changes no bit */
};

/* A part of a block: rows, and the features that fire in each. */
struct world_part {
  float *rows;  /* [rows][p] */
  gidx *start;  /* [rows + 1], from 0 on */
  idx *atoms;   /* [capacity] */
  float *codes; /* [capacity] */
  gidx capacity;
};

struct world_job {
  const struct world_task *task; /* borrowed */
  struct comm *c;                /* borrowed */
  struct world world;
  struct arena arena;
  struct worker worker;
  idx most;                    /* the most rows of a block that this rank has */
  float *vectors;              /* [f][p] */
  real *exact, *gram;          /* [f][p], [p][p]; only while the features are made */
  real *work;                  /* [p] */
  idx *counts, *entries;       /* [size] rows and entries that each rank has in a block */
  gidx *each;                  /* [size] entries that each rank has in a block, as gidx */
  idx *row_atoms;              /* [f] of a single row */
  float *row_codes;            /* [f] */
  struct world_part mine, all; /* `all` on rank 0 */
  gidx fired;                  /* entries of all rows; the same on every rank */
  uint64_t rows_hash;          /* of the rows (model/identity.h); the same on every rank */
  uint64_t fingerprint;        /* of the rows; the same on every rank */
};

/* *bytes <- the memory of rank 0, which needs the most, without the entries of a block. */
int world_memory(const struct world_task *task, int ranks, gidx *bytes);

/* Make the features.  Collective, as is world_rows(); the same status on every rank. */
int world_open(struct world_job *job, struct comm *c, const struct world_task *task);
void world_close(struct world_job *job);

/* Write the rows, and the features that fire in them. */
int world_rows(struct world_job *job, const struct matrix_sink *rows,
               const struct support_sink *truth);

#endif
