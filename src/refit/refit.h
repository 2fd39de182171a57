/* SPDX-License-Identifier: BSD-3-Clause
 * Refit: backfitting sweeps, in which class after class, atom by atom, a K = 1 system is assembled
 * and solved, the atom's frame moves, and the codes of its rows are solved again.
 *
 * Floor: refit.  Knows no files.
 *
 * Read state.h first (what the ranks hold), then color.h, atom_batch.h, directions.h,
 * batch_systems.h and step.h (what becomes of a batch of atoms), this header (a sweep), resident.h
 * (a sweep on a GPU), sweep_end.h with sparse_coder.h and sums.h, state_write.h.  all_systems.h is
 * the job of `sagitta assemble`; layout.h tells the memory of either.
 *
 * An atom moves within q directions, and the codes of its n rows follow: one Newton step for both
 * solves the atom's arrow system (doc/numerics.md, sections 4 and 5).  A step that makes the rows
 * worse is solved again with a larger ridge: damped Newton.  The terminal pass forms the same Schur
 * complement for all atoms jointly, and its determinant gives the Laplace approximation of the
 * evidence. */
#ifndef REFIT_REFIT_H
#define REFIT_REFIT_H

#include "base/phase.h"
#include "model/atom_step.h"
#include "model/classes.h"
#include "refit/atom_batch.h"

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
  REFIT_WAIT, /* until what the sweep before gave is written, and to copy what is next */
  REFIT_PHASES
};
void refit_phases(struct phase phases[REFIT_PHASES]);

/* Where a sweep is between two batches, and all that it needs to go on from there, beside the state
 * that it began with. */
struct sweep_point {
  gidx atoms;                    /* done, in the order of the classes */
  const real *frames;            /* [k][d][p] */
  const struct atom_step *steps; /* [k] of those done */
  double after;                  /* seconds that the end takes, roughly; 0 while atoms are left */
};

/* Who looks at a sweep while it is in work, about every second, and behind its last atom, and may
 * end it there.  What asks is to ask on every rank. */
struct sweep_watch {
  int (*look)(void *self, const struct sweep_point *at, int *stop); /* collective; NULL: nobody */
  void *self;                                                       /* borrowed */
};

/* A sweep that goes on from where another run of it was.  The moves that were accepted are made
 * again, class after class: residuals and codes have the bits that they had then. */
struct sweep_start {
  gidx atoms;          /* done; 0: none */
  const float *before; /* [k][d][p] the frames that the sweep began with, as the state has them */
  /* <- those of then, the frames on rank 0; collective */
  int (*take)(void *self, real *frames, struct atom_step *steps);
  void *self; /* borrowed */
};

struct sweep_task {
  const struct classes *classes;
  idx q;            /* directions of an atom */
  const char *what; /* names the sweep where progress is shown */
  struct sweep_watch watch;
  struct sweep_start start;
  double after; /* seconds that the end of the sweep takes, roughly */
};

/* One sweep over the classes: residuals are computed, then every atom takes its step.  steps[k] is
 * written on every rank.  Frames and codes are f64 afterwards; what ends a sweep is in
 * refit/sweep_end.h.  *stopped <- it was ended before.  Collective. */
int refit_sweep(struct refit_state *f, const struct sweep_task *task, struct phase *phases,
                struct atom_step *steps, struct sweep_counts *counts, int *stopped);

/* A batch_bytes_of: the most that a batch of a sweep takes beside the state. */
int refit_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
