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
  gidx present;   /* bytes of memory that may be used */
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

/* Bytes on rank 0: an upper bound, known before any work. */
struct terminal_memory {
  gidx border, schur, lapack, workspace, inputs, results, total;
};
void terminal_memory(const struct terminal_task *t, struct terminal_memory *m);
/* ERR_MEMORY with the numbers when it is more than task->present. */
int terminal_fits(const struct terminal_task *t);

/* Collective; the same status on every rank.  The result is set on rank 0. */
int terminal_run(const struct terminal_task *t, struct comm *c, struct terminal_result *r,
                 struct phase *phases);

#endif
