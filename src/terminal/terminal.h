/* SPDX-License-Identifier: BSD-3-Clause
 * The terminal pass.  All ranks find directions.  Then rank 0 alone reads the rows, forms the Schur
 * complement S of the joint system, factors it, and derives evidence and covariance from it; the
 * other ranks wait without using a core.
 *
 * Floor: terminal.  Knows no files: rows, atoms and supports come from sources.
 *
 * Read terminal.c first, then directions.c, rows.c (the pass over the rows), spectrum.c and
 * covariance.c.  slq.c is for S that is too large to form.  layout.c counts the memory, device.c
 * opens the device of rank 0, lapack.h is for the report.
 *
 * model/joint.h has the joint system.  Its unknowns are the codes of all rows and the borders of
 * all atoms: an atom has d borders for each of its directions.  For one atom it is the arrow system
 * of refit/refit.h.  The codes are eliminated row by row, which leaves S.  The determinant of the
 * joint system, computed from the rows and S, gives the Laplace approximation of the evidence. */
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
  int nonnegative;       /* 1: codes that are 0 are at their bound (N.17), and d is 1 */
  struct identity named; /* the inputs that the codes were solved for, as far as known */
  idx top_s;             /* atoms per row */
  idx directions;        /* largest number of directions of an atom */
  enum terminal_evidence evidence;
  enum terminal_spectrum spectrum;
  idx cross;      /* number of cross-atom pairs to list */
  real weak;      /* an eigenvalue is weak if it is at most this part of the largest magnitude */
  real duplicate; /* two atoms with at least this cosine are near duplicates */
  idx panel, threads;
  gidx workspace; /* bytes besides S */
  gidx present;   /* bytes of memory that the ranks of a machine may use */
  const char *variant;
  const char *device, *kernels; /* as struct device_options; EVIDENCE_SLQ always uses the CPU */
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

/* The device of rank 0, and what it did; on other ranks zeros, and "". */
struct terminal_ran {
  const char *device; /* "cpu" or "cuda" */
  char variant[256];  /* its instruction set, or the GPU's name */
  struct device_counts counts;
};

/* Run the pass; the result is set on rank 0.  ERR_COMM may come while rank 0 still works: all
 * arguments must stay valid until the program ends.  Collective; the same status on every rank. */
int terminal_run(const struct terminal_task *t, struct comm *c, struct terminal_result *r,
                 struct phase *phases, struct terminal_ran *ran);

#endif
