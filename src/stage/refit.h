/* SPDX-License-Identifier: BSD-3-Clause
 * Backfitting sweeps: class after class, each atom's system is assembled and solved, its frame
 * moves, the codes of its rows are solved again (doc/numerics.md, refit).
 *
 * Floor: stage.  Knows no files. */
#ifndef STAGE_REFIT_H
#define STAGE_REFIT_H

#include "base/log_pair.h"
#include "base/phase.h"
#include "model/classes.h"
#include "stage/fit.h"

/* What became of an atom in a sweep; all 0 but log_det NaN for a dead one. */
struct atom_step {
  int accepted;
  int status; /* of the last solve, enum arrow_status */
  idx retries;
  real ridge;           /* added to both diagonals in the last solve */
  struct log_pair pair; /* of the determinant of the last solve */
  real log_det;
};

struct sweep_counts {
  gidx accepted, rejected;
  gidx escalated; /* of them: atoms that needed larger ridges */
};

enum refit_phase {
  REFIT_COLOR,
  REFIT_RESIDUALS,
  REFIT_BATCH,
  REFIT_ASSEMBLE,
  REFIT_SOLVE,
  REFIT_MOVE,
  REFIT_CODES,
  REFIT_ROUTE,
  REFIT_METRICS,
  REFIT_WRITE,
  REFIT_PHASES
};
void refit_phases(struct phase phases[REFIT_PHASES]);

/* The classes of the fit's supports by (N.6), the same on every rank.  Collective. */
int refit_classes(const struct fit *f, struct classes *classes);

/* One sweep over the classes with q directions an atom: residuals are computed, then every atom
 * takes its step.  steps[k] is written on every rank.  Frames and codes are f64 afterwards; what
 * ends a sweep is in fit_round.h.  Collective. */
int refit_sweep(struct fit *f, const struct classes *classes, idx q, struct phase *phases,
                struct atom_step *steps, struct sweep_counts *counts);

#endif
