/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic dictionaries and rows: each rank makes its share of a block, rank 0 writes the block.
 *
 * Floor: synth.  Knows no files: what is made goes to sinks, on rank 0. */
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
  gidx max_keep;          /* most bytes of a planted dictionary that every rank keeps; of a larger
                           * one the atoms of each row are made again, with the same bits */
};

/* Bytes of the planted dictionary that a rank keeps: the whole or nothing. */
gidx synth_kept(const struct synth_task *task);

/* *bytes <- the memory of rank 0, which takes the most, by running the job's allocation dry. */
int synth_memory(const struct synth_task *task, int ranks, gidx *bytes);

struct synth {
  const struct synth_task *task; /* borrowed */
  struct comm *c;                /* borrowed */
  struct arena arena;
  struct worker worker;
  idx share;            /* rows or atoms of a block that are this rank's, at most */
  float *mine, *all;    /* [share][d][p]; rank 0: [block][d][p] */
  idx *counts;          /* [size] */
  float *kept;          /* [k][d][p] planted atoms, or NULL */
  float *again;         /* [s][d][p] atoms of a row that are made again, or NULL */
  const float **vector; /* [s * d] */
  real *work;
  idx *atoms, *all_atoms;   /* [share][s]; rank 0: [block][s] */
  float *codes, *all_codes; /* [share][s][d]; rank 0: [block][s][d] */
  uint64_t fingerprint;     /* of the last array that was made */
};

/* Collective, like the functions below; the same status on every rank. */
int synth_open(struct synth *s, struct comm *c, const struct synth_task *task);
void synth_close(struct synth *s);

/* Write the dictionary; or its start, at the cosine task->cosine to it. */
int synth_atoms(struct synth *s, int start, const struct matrix_sink *sink);

/* Write the rows and, unless truth is NULL, the atoms and codes that they consist of (no
 * scores). */
int synth_rows(struct synth *s, const struct matrix_sink *sink, const struct support_sink *truth);

#endif
