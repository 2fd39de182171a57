/* SPDX-License-Identifier: BSD-3-Clause
 * The terminal pass: directions over all ranks, then rank 0 alone streams the rows, forms the
 * joint system's Schur complement S, factors it and reads evidence and covariance from it; the
 * other ranks wait without using a core.
 *
 * Floor: stage.  Knows no files: rows, atoms and supports come from sources. */
#ifndef STAGE_TERMINAL_H
#define STAGE_TERMINAL_H

#include "base/phase.h"
#include "base/worker.h"
#include "comm/comm.h"
#include "device/dense.h"
#include "model/dictionary.h"
#include "model/joint.h"
#include "model/rows.h"
#include "model/supports.h"
#include "model/terminal.h"

enum terminal_evidence { EVIDENCE_EXACT, EVIDENCE_SLQ };
enum terminal_spectrum { SPECTRUM_NONE, SPECTRUM_INERTIA, SPECTRUM_FULL };

struct terminal_task {
  const struct row_source *rows;
  const struct atom_source *atoms;
  const struct support_source *supports;
  const real *mean; /* [p] subtracted from rows; NULL: none */
  real rho;
  idx top_s;      /* atoms a row */
  idx directions; /* most of an atom */
  enum terminal_evidence evidence;
  enum terminal_spectrum spectrum;
  idx cross;      /* cross-atom pairs listed */
  real weak;      /* eigenvalues up to this part of the largest are weak */
  real duplicate; /* cosine from which atoms are near duplicates */
  idx panel, threads;
  gidx workspace; /* bytes beside S */
  gidx present;   /* bytes of memory that the ranks of a machine may use */
  const char *variant;
};

enum terminal_phase {
  TERMINAL_DIRECTIONS,
  TERMINAL_READ,
  TERMINAL_ROWS,
  TERMINAL_ASSEMBLE,
  TERMINAL_SPECTRUM,
  TERMINAL_FACTOR,
  TERMINAL_INVERSE,
  TERMINAL_COVARIANCE,
  TERMINAL_LANCZOS,
  TERMINAL_ATOMS,
  TERMINAL_PHASES
};

/* Bytes at most, known before any work: of each rank while directions are found, then of rank 0. */
struct terminal_memory {
  gidx border;
  int ranks;       /* of this machine */
  gidx fit;        /* of each of them, for the directions */
  gidx inputs;     /* rank 0's, all the while: atoms, directions */
  gidx duplicates; /* and in turn */
  gidx schur, lapack, workspace, results;
  gidx least; /* that the workspace may have */
  gidx total; /* of this rank's machine */
};
/* ERR_INPUT when the inputs do not fit together.  Not collective. */
int terminal_memory(const struct terminal_task *t, struct comm *c, struct terminal_memory *m);
/* ERR_MEMORY with the numbers when the total is more than task->present, ERR_USAGE when the
 * workspace is too little.  Not collective. */
int terminal_fits(const struct terminal_task *t, struct comm *c);

/* Collective; the same status on every rank.  The result is set on rank 0.  ERR_COMM comes while
 * rank 0 still works: task, r and phases must outlive the job. */
int terminal_run(const struct terminal_task *t, struct comm *c, struct terminal_result *r,
                 struct phase *phases);

#endif
