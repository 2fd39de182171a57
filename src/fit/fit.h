/* SPDX-License-Identifier: BSD-3-Clause
 * Fitting a dictionary: from rows to atoms that describe rows which the fit never saw.
 *
 * Floor: fit.  Knows no files: rows come from a source, and what each sweep gives goes to a sink.
 *
 * The start is drawn from the rows (seed).  A sweep moves every atom (refit or update.h), replaces
 * atoms that no row uses (resample.h), lets the others go on as they moved, rounds all to float32,
 * routes the fitted rows and solves their codes.  Then the held-out rows are encoded, which is what
 * counts: the fit ends when they gain no more, and its result is the sweep that was best for them.
 *
 * With a minibatch the fitted rows are in memory part by part, a sweep moves the atoms by one part,
 * and what earlier parts said counts less and less. */
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

/* How a sweep moves the atoms: each by its own system, colour class after colour class, or all at
 * once, d = 1: by the normal equations, or by conjugate gradients, without a Gram matrix. */
enum fit_update { UPDATE_AUTO, UPDATE_ATOMS, UPDATE_JOINT, UPDATE_CONJUGATE };

enum {
  FIT_PATIENCE = 5,            /* passes over the rows that a fit is given to gain by the tolerance,
                                * and parts that an atom is given to be used */
  FIT_HELD_MOST = 65536,       /* rows, about, that are held out at most */
  FIT_JOINT_ATOMS_MOST = 16384 /* for UPDATE_AUTO, whose Gram matrix has 2 GB then */
};

/* Do all atoms move at once? */
static inline int fit_moves_all(enum fit_update how)
{
  return how == UPDATE_JOINT || how == UPDATE_CONJUGATE;
}

struct fit_task {
  const struct row_source *rows;
  const struct row_source *held; /* rows to judge by; NULL: windows of `rows` are held out */
  real held_out_fraction;        /* of the windows, for that; 0: nothing is held out */
  idx k, d, top_s, rounds;
  int center;      /* subtract the column means of the fitted rows */
  int nonnegative; /* codes are at least 0; d = 1 */
  int no_advice;   /* of its rows, which another fit warns of */
  real rho;        /* penalty on the codes while fitting; the held-out rows are coded without */
  uint64_t seed;
  gidx sweeps;            /* at most; with a minibatch passes over the rows */
  real tolerance;         /* end when FIT_PATIENCE passes over the rows gain less */
  real max_seconds;       /* end before a sweep that would exceed this; 0: no limit */
  real resample_fraction; /* of the atoms, that a sweep replaces at most */
  real duplicate_cosine; /* of atoms above it the one with fewer rows is replaced; 1: none; d = 1 */
  real relaxation; /* in [1, 2): how far atoms go, of the way that a sweep moves them, until one
                      * loses (N.21); not with a minibatch */
  enum fit_update update;
  idx directions; /* UPDATE_ATOMS: in which an atom may move in a sweep */
  idx passes;     /* in a sweep: of the descent of UPDATE_JOINT, or steps of UPDATE_CONJUGATE */
  gidx minibatch; /* rows of a part, but for UPDATE_ATOMS; 0: all rows are one part */
  gidx beside;    /* bytes that the sink takes on a rank, for the memory check */
  idx threads;
  const char *device, *variant, *filter;
  const char *share;             /* lists, and Gram rows: auto, yes, no (fit/gram.h); NULL: auto */
  const struct fit_point *start; /* go on from here; NULL: begin anew */
};

/* What a sweep gives; valid during the call, on every rank. */
struct fit_sweep {
  struct fit_point point;
  gidx best; /* number of the best sweep so far */
  gidx fitted_rows, parts;
};
/* A sweep in work that may be left: of UPDATE_ATOMS without a GPU, or behind an update of all
 * atoms at once, where all rows are one part. */
struct fit_within {
  gidx sweep;                        /* done before it */
  const float *atoms;                /* [k][d][p] that it began with */
  uint64_t classes;                  /* their hash */
  uint64_t rows_hash, held_out_hash; /* as struct fit_point */
};
struct fit_sink {
  void *self;
  int (*sweep)(void *self, const struct fit_sweep *sweep); /* collective */
  int (*stops)(void *self, int *stop); /* before a sweep: is there to be none?  Collective */
  /* A sweep begins: *start <- what an earlier run has done of it.  Not collective; the same on
   * every rank. */
  int (*begins)(void *self, const struct fit_within *now, struct sweep_start *start);
  /* It is where *at says: is it to end there?  Collective. */
  int (*within)(void *self, const struct fit_within *now, const struct sweep_point *at, int *stop);
  struct stops coding; /* asked while rows are routed and coded: what is done since the last call of
                        * sweep() or within() is then lost */
  struct stops reading; /* asked while the rows are read for their mean: all is then lost */
};

/* Routing, codes and copies are those of the fitted and of the held-out rows together. */
enum fit_phase {
  FIT_START, /* the start drawn, the first rows and the held-out ones read */
  FIT_COLOR, /* which atoms may move side by side */
  FIT_UPDATE,
  FIT_REVIVE,
  FIT_ROUND, /* atoms relaxed, and rounded as files hold them */
  FIT_PART,  /* the rows of another part read */
  FIT_ROUTE,
  FIT_CODES,
  FIT_COPY,
  FIT_INDEX, /* the rows of each atom */
  FIT_SHOW,  /* "wait": the state handed to the sink */
  FIT_WRITE, /* in the background; filled in by the sink */
  FIT_PHASES
};

/* Why a fit ended. */
enum fit_end { FIT_SETTLED, FIT_SWEEPS, FIT_SECONDS, FIT_STOPPED };

struct fit_result {
  enum fit_end end;
  gidx sweeps, best;
  gidx fitted_rows, held_out_rows;
  real gain; /* of explained variance in the last FIT_PATIENCE passes; NaN: there were fewer */
  idx top_s; /* atoms a row: no more than there are */
  char device[280]; /* what routes and codes: "cpu avx512", or "cuda" and the GPU's name; known
                     * before the first sweep is shown */
  struct phase phases[FIT_PHASES];
};

/* What UPDATE_AUTO is, by shapes alone: not by ranks, threads or memory, since the atoms depend on
 * it. */
enum fit_update fit_update_choose(const struct fit_task *task, idx top_s);

/* Is a line worth more than another: by the held-out rows, where there are any; -INFINITY where the
 * rows do not vary. */
real fit_worth(const struct fit_line *line);
gidx fit_best(const struct fit_line *lines, gidx sweep);

/* What the shapes say before anything of their size is allocated; *fitted <- how many rows are
 * fitted.  Not collective.  ERR_INPUT: too few rows for the atoms or for what is to be held out, or
 * rows of different columns. */
int fit_task_check(const struct fit_task *task, gidx *fitted);

/* For a task without a minibatch: *rows <- 0 where the memory of every rank and GPU holds all rows,
 * and else of a part that it does hold, of a ladder that makes machines agree often (N.21);
 * why[capacity] <- what was short.  0 also where no part fits, or the update has none: then
 * fit_run() says so.  The atoms depend on the choice.  Collective. */
int fit_parts_choose(const struct fit_task *task, struct comm *c, gidx *rows, char *why,
                     size_t capacity);

/* Collective; the same status on every rank.  ERR_INPUT: what fit_task_check(), seed_run() and
 * refit_state_load() refuse, rows to judge by that do not vary, or a start that does not fit the
 * rows. */
int fit_run(const struct fit_task *task, struct comm *c, const struct fit_sink *sink,
            struct fit_result *result);

#endif
