/* SPDX-License-Identifier: BSD-3-Clause
 * Refit: backfitting sweeps.  Class by class and atom by atom, the atom's arrow system is assembled
 * and solved, its frame moves, and the codes of its rows are solved again.
 *
 * Floor: refit.  Knows no files.
 *
 * Read state.h first (what the ranks hold), then color.h, atom_batch.h, directions.h,
 * batch_systems.h and step.h (how a batch of atoms is handled), this header (a sweep), resident.h
 * (a sweep on a GPU), sweep_end.h with sparse_coder.h and sums.h, state_write.h.  all_systems.h is
 * the job of `sagitta assemble`; layout.h has the memory of both jobs.
 *
 * An atom moves within q directions, and the codes of its n rows follow: one Newton step for both
 * solves the atom's arrow system (doc/numerics.md, sections 4 and 5).  A step that makes the rows
 * worse is solved again with a larger ridge: damped Newton.  The terminal pass forms the same Schur
 * complement for all atoms jointly; its determinant gives the Laplace approximation of the
 * evidence. */
#ifndef REFIT_REFIT_H
#define REFIT_REFIT_H

#include "base/phase.h"
#include "model/atom_step.h"
#include "model/classes.h"
#include "refit/atom_batch.h"

struct sweep_counts {
  gidx accepted, rejected;
  gidx escalated; /* accepted and rejected atoms that needed larger ridges */
};

enum refit_phase {
  REFIT_COLOR,
  REFIT_RESIDUALS,
  REFIT_BATCH,
  REFIT_ASSEMBLE,
  REFIT_SOLVE,
  REFIT_MOVE,
  REFIT_STEPS, /* on a GPU: REFIT_RESIDUALS to REFIT_MOVE as one operation */
  REFIT_CODES,
  REFIT_ROUTE,
  REFIT_METRICS,
  REFIT_WRITE,
  REFIT_WAIT, /* until the previous sweep's results are written, and the new ones are copied */
  REFIT_PHASES
};
void refit_phases(struct phase phases[REFIT_PHASES]);

/* A position between two batches of a sweep, with all that a resumed run needs, besides the state
 * that the sweep began with. */
struct sweep_point {
  gidx atoms;                    /* atoms done, in the order of the classes */
  const real *frames;            /* [k][d][p] */
  const struct atom_step *steps; /* [k] of the atoms done */
  double after;                  /* seconds that the end of the sweep takes, roughly; 0 while atoms
                                  * are left */
};

/* Called about every second of a sweep, and after its last atom; it may end the sweep at this
 * point.  *stop must be the same on every rank. */
struct sweep_watch {
  /* Collective; NULL: not called. */
  int (*look)(void *self, const struct sweep_point *at, int *stop);
  void *self; /* borrowed */
};

/* Where a sweep begins, if an earlier run stopped inside it.  The accepted moves are made again,
 * class by class: residuals and codes get the same bits as before. */
struct sweep_start {
  gidx atoms;          /* atoms done; 0: none */
  const float *before; /* [k][d][p] the frames that the sweep began with, as in the state */
  /* frames, on rank 0, and steps <- those of that run; collective */
  int (*take)(void *self, real *frames, struct atom_step *steps);
  void *self; /* borrowed */
};

struct sweep_task {
  const struct classes *classes;
  idx q;            /* directions per atom */
  const char *what; /* names the sweep in the progress */
  struct sweep_watch watch;
  struct sweep_start start;
  double after; /* seconds that the end of the sweep takes, roughly */
};

/* One sweep over the classes: residuals are computed, then every atom takes its step.  steps[k] is
 * written on every rank.  Frames and codes are f64 afterwards; refit/sweep_end.h ends a sweep.
 * *stopped <- the sweep was ended early.  Collective. */
int refit_sweep(struct refit_state *f, const struct sweep_task *task, struct phase *phases,
                struct atom_step *steps, struct sweep_counts *counts, int *stopped);

/* *bytes <- the peak memory of a batch of a sweep, without the state.  A function of type
 * batch_bytes_of. */
int refit_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes);

#endif
