/* SPDX-License-Identifier: BSD-3-Clause
 * Refit: backfitting sweeps, in which class after class, atom by atom, a K = 1 system is assembled
 * and solved, the atom's frame moves, and the codes of its rows are solved again.
 *
 * Floor: refit.  Knows no files.
 *
 * Read state.h first (what the ranks hold), then color.h, atom_batch.h, directions.h,
 * batch_systems.h and step.h (what becomes of a batch of atoms), this header (a sweep), resident.h
 * (a sweep on a GPU), sweep_end.h with coder.h and sums.h, state_write.h.  all_systems.h is the job
 * of `sagitta assemble`; layout.h tells the memory of either.
 *
 * An atom moves within q directions, and the codes of its n rows follow: one Newton step for both
 * solves the atom's arrow system (doc/numerics.md, sections 4 and 5).  A step that makes the rows
 * worse is solved again with a larger ridge: damped Newton.  The terminal pass forms the same Schur
 * complement for all atoms jointly, and its determinant gives the Laplace approximation of the
 * evidence. */
#ifndef REFIT_REFIT_H
#define REFIT_REFIT_H

#include "base/det_pair.h"
#include "base/phase.h"
#include "model/classes.h"
#include "refit/atom_batch.h"

/* What became of an atom in a sweep; all 0 but log_det NaN for a dead one. */
struct atom_step {
  int accepted;
  int status; /* of the last solve, enum arrow_status */
  idx retries;
  real ridge;           /* added to both diagonals in the last solve */
  struct det_pair pair; /* of the determinant of the last solve */
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
  REFIT_STEPS, /* all of these on a GPU */
  REFIT_CODES,
  REFIT_ROUTE,
  REFIT_METRICS,
  REFIT_WRITE,
  REFIT_PHASES
};
void refit_phases(struct phase phases[REFIT_PHASES]);

/* One sweep over the classes with q directions an atom: residuals are computed, then every atom
 * takes its step.  steps[k] is written on every rank.  Frames and codes are f64 afterwards; what
 * ends a sweep is in refit/sweep_end.h.  what names the sweep where progress is shown.  Collective.
 */
int refit_sweep(struct refit_state *f, const struct classes *classes, idx q, const char *what,
                struct phase *phases, struct atom_step *steps, struct sweep_counts *counts);

/* A batch_bytes_of: the most that a batch of a sweep takes beside the state. */
int refit_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
