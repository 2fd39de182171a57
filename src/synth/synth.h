/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic dictionaries and rows: each rank makes its share of a block, rank 0 writes the block.
 *
 * Floor: synth.  Knows no files: results go to sinks, on rank 0. */
#ifndef SYNTH_SYNTH_H
#define SYNTH_SYNTH_H

#include "base/memory.h"
#include "base/types.h"
#include "base/worker.h"
#include "comm/comm.h"
#include "model/results.h"
#include "model/sink.h"
#include "model/synth.h"

enum synth_kind { SYNTH_PLANTED, SYNTH_TRIG };

struct synth_task {
  enum synth_kind kind;
  struct planted planted; /* SYNTH_TRIG: only k, p and d = 1 matter */
  gidx n;                 /* rows */
  real cosine;            /* between the start dictionary and the planted one */
  idx block;              /* rows or atoms handled at a time; changes no bit */
  gidx max_keep;          /* a planted dictionary of at most this many bytes is kept by every rank;
                           * from a larger one the atoms of each row are made again, with the same
                           * bits */
};

/* Bytes of the planted dictionary that a rank keeps: those of the whole dictionary, or 0. */
gidx synth_kept(const struct synth_task *task);

/* *bytes <- the memory of rank 0, which needs the most.  It is found by a dry run of the job's
 * allocations. */
int synth_memory(const struct synth_task *task, int ranks, gidx *bytes);

struct synth {
  const struct synth_task *task; /* borrowed */
  struct comm *c;                /* borrowed */
  struct arena arena;
  struct worker worker;
  idx share;            /* the most rows or atoms of a block that this rank has */
  float *mine, *all;    /* [share][d][p]; rank 0: [block][d][p] */
  idx *counts;          /* [size] */
  float *kept;          /* [k][d][p] planted atoms, or NULL */
  float *again;         /* [s][d][p] atoms of a row that are made again, or NULL */
  const float **vector; /* [s * d] the vectors of the atoms of a row */
  real *work;
  idx *atoms, *all_atoms;   /* [share][s]; rank 0: [block][s] */
  float *codes, *all_codes; /* [share][s][d]; rank 0: [block][s][d] */
  uint64_t fingerprint;     /* of the last array that was made */
};

/* Collective, as are synth_atoms() and synth_rows(); the same status on every rank. */
int synth_open(struct synth *s, struct comm *c, const struct synth_task *task);
void synth_close(struct synth *s);

/* Write the planted dictionary.  If start is 1, write the start dictionary instead: it has the
 * cosine task->cosine with the planted one. */
int synth_atoms(struct synth *s, int start, const struct matrix_sink *sink);

/* Write the rows and, unless truth is NULL, the atoms and codes that they consist of (no
 * scores). */
int synth_rows(struct synth *s, const struct matrix_sink *sink, const struct support_sink *truth);

#endif
