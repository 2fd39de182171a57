/* SPDX-License-Identifier: BSD-3-Clause
 * Fit a dictionary to rows, so that it also describes rows that the fit never saw.
 *
 * Floor: fit.  Knows no files: rows come from a source, and the result of each sweep goes to a
 * sink.
 *
 * The first atoms are drawn from the rows (seed).  A sweep moves every atom (refit, update.h or
 * conjugate.h).  If d is 1, it replaces atoms that no row uses, and atoms that nearly equal another
 * one (resample.h).  It may relax the other atoms: they go on in the direction in which they moved.
 * It rounds all atoms to float32, routes the fitted rows and solves their codes.  Then the held-out
 * rows are encoded.  The fit ends when their explained variance gains no more.  Its result is the
 * sweep in which they are explained best.  Without held-out rows the fitted rows decide.
 *
 * With a minibatch a sweep uses the rows of one part of the fitted rows.  Only this part is in
 * memory, and the next one, if there is room to read it ahead.  The weight of earlier parts falls
 * with each sweep. */
#ifndef FIT_FIT_H
#define FIT_FIT_H

#include "base/phase.h"
#include "base/stop.h"
#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/results.h"
#include "model/points.h"
#include "model/rows.h"
#include "refit/refit.h"

/* How a sweep moves the atoms.  UPDATE_ATOMS: each atom by its own system, colour class after
 * colour class.  The other two move all atoms at once, for d = 1.  UPDATE_JOINT: by the normal
 * equations.  UPDATE_CONJUGATE: by conjugate gradients, without a Gram matrix. */
enum fit_update { UPDATE_AUTO, UPDATE_ATOMS, UPDATE_JOINT, UPDATE_CONJUGATE };

enum {
  /* Passes over the rows in which a fit must gain the tolerance.  Also: an atom that no row of the
   * last FIT_PATIENCE parts has used is replaced, even if there are more parts. */
  FIT_PATIENCE = 5,
  FIT_HELD_MOST = 65536, /* approximate largest number of rows that are held out */
  /* Without parts: the largest number of atoms for which UPDATE_AUTO may be UPDATE_JOINT.  The Gram
   * matrix then has 2 GB. */
  FIT_JOINT_ATOMS_MOST = 16384,
  /* With parts UPDATE_AUTO is UPDATE_JOINT up to this number of atoms, whose Gram matrix has
   * 137 GB, and UPDATE_CONJUGATE above. */
  FIT_PARTS_JOINT_ATOMS_MOST = 131072
};

/* What UPDATE_AUTO is with parts. */
static inline enum fit_update fit_update_by_parts(idx k)
{
  return k <= FIT_PARTS_JOINT_ATOMS_MOST ? UPDATE_JOINT : UPDATE_CONJUGATE;
}

/* Do all atoms move at once? */
static inline int fit_moves_all(enum fit_update how)
{
  return how == UPDATE_JOINT || how == UPDATE_CONJUGATE;
}

struct fit_task {
  const struct row_source *rows;
  const struct row_source *held; /* rows to evaluate; NULL: windows of `rows` are held out */
  real held_out_fraction;        /* share of the rows in these windows; 0: none are held out */
  idx k, d, top_s, rounds;
  int center;      /* subtract the column means of the fitted rows */
  int nonnegative; /* codes are at least 0; d = 1 */
  int no_advice;   /* 1: no advice about the rows, since another fit gives it */
  real rho;        /* penalty on the codes of fitted rows; held-out rows are coded without */
  uint64_t seed;
  gidx sweeps;            /* largest number of sweeps; with a minibatch, of passes over the rows */
  real tolerance;         /* end when FIT_PATIENCE passes over the rows gain less */
  real max_seconds;       /* end before a sweep that would exceed this; 0: no limit */
  real resample_fraction; /* largest share of the atoms that a sweep replaces */
  /* If the cosine of two atoms is larger than this, the one with fewer rows is replaced; 1: none is
   * replaced for that.  Not used if d > 1. */
  real duplicate_cosine;
  /* In [1, 2): the factor that lengthens the moves of a sweep; not with a minibatch.  Once a sweep
   * has lowered the explained variance of the fitted rows, moves keep their length (N.21). */
  real relaxation;
  enum fit_update update;
  idx directions; /* UPDATE_ATOMS: directions in which an atom may move in a sweep */
  idx passes;     /* in a sweep: passes of UPDATE_JOINT, or steps of UPDATE_CONJUGATE */
  gidx minibatch; /* rows of a part; 0: all rows are one part; not with UPDATE_ATOMS */
  gidx beside;    /* bytes of the sink on a rank, for the memory check */
  idx threads;
  const char *device, *variant, *filter;
  const char *share;             /* do ranks of a node share lists of atoms and codes, and Gram
                                  * rows: auto, yes, no (fit/gram.h); NULL: auto */
  const struct fit_point *start; /* continue from here; NULL: begin anew */
};

/* The result of a sweep; valid during the call of the sink, on every rank. */
struct fit_sweep {
  struct fit_point point;
  gidx best; /* number of the best sweep so far */
  gidx fitted_rows, parts;
};
/* The current sweep, if it can be stopped inside.  This is possible with UPDATE_ATOMS, unless the
 * steps run on a GPU.  It is also possible after an update of all atoms at once, if all rows are
 * one part. */
struct fit_within {
  gidx sweep;                        /* number of sweeps done before it */
  const float *atoms;                /* [k][d][p] atoms at its beginning */
  uint64_t classes;                  /* hash of the colour classes */
  uint64_t rows_hash, held_out_hash; /* as in struct fit_point */
};
struct fit_sink {
  void *self;
  int (*sweep)(void *self, const struct fit_sweep *sweep); /* collective */
  int (*stops)(void *self, int *stop); /* before a sweep: *stop <- 1: end the fit.  Collective */
  /* At the beginning of a sweep: *start <- the steps of this sweep that an earlier run has done.
   * Not collective; the same on every rank. */
  int (*begins)(void *self, const struct fit_within *now, struct sweep_start *start);
  /* Inside a sweep, at *at: *stop <- 1: end here.  Collective. */
  int (*within)(void *self, const struct sweep_point *at, int *stop);
  /* Asked while rows are routed and coded; a stop then loses the work since the last call of
   * sweep() or within(). */
  struct stops coding;
  struct stops reading; /* asked while the rows are read for their mean; a stop then loses all */
};

/* FIT_ROUTE, FIT_CODES and FIT_COPY count fitted and held-out rows together. */
enum fit_phase {
  FIT_START, /* draw the start, read the first rows and the held-out rows */
  FIT_COLOR, /* colour the atoms: which may move at the same time */
  FIT_UPDATE,
  FIT_REVIVE,
  FIT_ROUND, /* relax atoms, and round them as files have them */
  FIT_PART,  /* read the rows of another part */
  FIT_ROUTE,
  FIT_CODES,
  FIT_COPY,
  FIT_INDEX, /* index the rows of each atom */
  FIT_SHOW,  /* "wait" in the log: hand the state to the sink */
  FIT_WRITE, /* in the background; filled in by the sink */
  FIT_PHASES
};

/* Why a fit ended. */
enum fit_end { FIT_SETTLED, FIT_SWEEPS, FIT_SECONDS, FIT_STOPPED };

struct fit_result {
  enum fit_end end;
  gidx sweeps, best;
  gidx fitted_rows, held_out_rows;
  real gain; /* gain in explained variance of the last FIT_PATIENCE passes; NaN: not known */
  idx top_s; /* atoms per row: at most k */
  /* What routes and codes: "cpu avx512", or "cuda" and the name of the GPU.  Set before the first
   * sweep is shown. */
  char device[280];
  struct phase phases[FIT_PHASES];
};

/* The update that UPDATE_AUTO stands for.  The atoms depend on it, so it depends only on shapes,
 * not on ranks, threads or memory. */
enum fit_update fit_update_choose(const struct fit_task *task, idx top_s);

/* The worth of a sweep: the explained variance of held-out rows, or without them of the fitted
 * rows; -INFINITY: the rows do not vary.  fit_best(): the first of sweeps 0 .. sweep that has the
 * largest worth. */
real fit_worth(const struct fit_line *line);
gidx fit_best(const struct fit_line *lines, gidx sweep);

/* Check the task by its shapes, before any large allocation.  *fitted <- the number of rows that
 * are fitted.  ERR_INPUT: there are no rows; fewer than k * d rows are fitted; there are too few
 * rows to hold some out; or the rows to evaluate have another number of columns.  Not
 * collective. */
int fit_task_check(const struct fit_task *task, gidx *fitted);

/* The number of rows of a part if the fit chooses it, by shapes alone (N.21): an atom then has at
 * least 256 codes on average. */
gidx fit_chosen_part(idx k, idx top_s);

/* Choose the minibatch of a task without one.  *rows <- fit_chosen_part(), even if that does not
 * fit into memory: fit_run() then refuses it.  *rows <- 0 if all rows fit into the memory of every
 * rank and GPU, if task->update is UPDATE_ATOMS, or if one part would be all rows.  why[capacity]
 * <- the memory that was too small for all rows; "": they fit.  Collective. */
int fit_parts_choose(const struct fit_task *task, struct comm *c, gidx *rows, char *why,
                     size_t capacity);

/* Run a fit.  ERR_INPUT: as fit_task_check(), seed_run() and refit_state_load(); the rows that a
 * sweep is evaluated on do not vary; or the start does not fit the rows.  Collective; the same
 * status on every rank. */
int fit_run(const struct fit_task *task, struct comm *c, const struct fit_sink *sink,
            struct fit_result *result);

#endif
