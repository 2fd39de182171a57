/* SPDX-License-Identifier: BSD-3-Clause
 * The terminal pass: directions over all ranks, then rank 0 alone streams the rows, forms the
 * joint system's Schur complement S, factors it and reads evidence and covariance from it; the
 * other ranks wait without using a core.
 *
 * Floor: terminal.  Knows no files: rows, atoms and supports come from sources.
 *
 * Read terminal.c first, then directions.c, rows.c (the pass over the rows), spectrum.c,
 * covariance.c or, when S is too large to form, slq.c; layout.c tells the memory, device.c opens
 * what rank 0 computes on, lapack.h serves the report.  model/joint.h has the system: that of one
 * atom is the arrow of refit/refit.h, here all atoms' borders stand beside the codes of all rows,
 * which are eliminated row by row.  The determinant of the whole, by way of S, is the Laplace
 * approximation of the evidence. */
#ifndef TERMINAL_TERMINAL_H
#define TERMINAL_TERMINAL_H

#include "base/phase.h"
#include "base/worker.h"
#include "comm/comm.h"
#include "device/dense.h"
#include "model/dictionary.h"
#include "model/identity.h"
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
  int nonnegative;       /* codes that are 0 are at their bound (N.17); d is 1 */
  struct identity named; /* what the codes were solved for, as far as it is known */
  idx top_s;             /* atoms a row */
  idx directions;        /* of an atom, at most */
  enum terminal_evidence evidence;
  enum terminal_spectrum spectrum;
  idx cross;      /* cross-atom pairs listed */
  real weak;      /* eigenvalues up to this part of the largest are weak */
  real duplicate; /* cosine from which atoms are near duplicates */
  idx panel, threads;
  gidx workspace; /* bytes beside S */
  gidx present;   /* bytes of memory that the ranks of a machine may use */
  const char *variant;
  const char *device, *kernels; /* as struct device_options; without exact evidence a CPU */
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

/* What rank 0 computed on, and what that did; on other ranks zeros, and "". */
struct terminal_ran {
  const char *device; /* "cpu" or "cuda" */
  char variant[256];  /* its instruction set, or the GPU's name */
  struct device_counts counts;
};

/* Run the pass; the result is set on rank 0.  ERR_COMM may come while rank 0 still works: all
 * arguments must outlive the job.  Collective; the same status on every rank. */
int terminal_run(const struct terminal_task *t, struct comm *c, struct terminal_result *r,
                 struct phase *phases, struct terminal_ran *ran);

#endif
