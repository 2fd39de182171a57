/* SPDX-License-Identifier: BSD-3-Clause
 * Fitting a dictionary: from rows to atoms that describe rows which the fit never saw.
 *
 * Floor: fit.  Knows no files: rows come from a source, and what each sweep gives goes to a sink.
 *
 * The start is drawn from the rows (seed).  A sweep moves every atom by its K = 1 system (refit),
 * replaces atoms that no row uses (revive.h), rounds the atoms to float32, routes all fitted rows
 * again and solves their codes.  Then the held-out rows are encoded, which is what counts: the fit
 * ends when they gain no more, and its result is the sweep that was best for them. */
#ifndef FIT_FIT_H
#define FIT_FIT_H

#include "comm/comm.h"
#include "model/dictionary.h"
#include "model/results.h"
#include "model/rows.h"

/* How a sweep moves the atoms: each by its own system, colour class after colour class, or all at
 * once by the normal equations; d = 1.  AUTO takes the faster one. */
enum fit_update { UPDATE_AUTO, UPDATE_ATOMS, UPDATE_JOINT };

/* Sweeps that a fit is given to gain by the tolerance. */
enum { FIT_PATIENCE = 5 };

struct fit_task {
  const struct row_source *rows;
  const struct row_source *held; /* rows to judge by; NULL: windows of `rows` are held out */
  real held_share;               /* of the windows, for that; 0: nothing is held out */
  idx k, d, top_s, rounds;
  int center;      /* subtract the column means of the fitted rows */
  int nonnegative; /* codes are at least 0; d = 1 */
  real rho;        /* penalty on the codes while fitting; the held-out rows are coded without */
  uint64_t seed;
  gidx sweeps;       /* at most */
  real tolerance;    /* end when FIT_PATIENCE sweeps gain less */
  real max_seconds;  /* end before a sweep that would exceed this; 0: no limit */
  real revive_share; /* of the atoms, that a sweep replaces at most */
  enum fit_update update;
  idx directions; /* UPDATE_ATOMS: in which an atom may move in a sweep */
  idx passes;     /* UPDATE_JOINT: of the descent in a sweep */
  idx threads;
  const char *variant, *filter;
};

/* One sweep; line 0 is the start.  Explained variances are NaN where there are no such rows. */
struct fit_line {
  gidx sweep;
  real fitted, held; /* explained variance */
  gidx dead, revived, accepted, rejected, escalated;
  real move;    /* the largest distance that an atom moved */
  real seconds; /* since the fit began */
};

/* What a sweep gives; valid during the call.  atoms[k][d][p] and mean[p] are on every rank. */
struct fit_sweep {
  const struct fit_line *lines; /* [sweep + 1] */
  gidx sweep, best;             /* number of this sweep, and of the best so far */
  const float *atoms;
  const real *mean; /* NULL: rows are not centred */
  gidx fitted_rows, held_rows;
};
struct fit_sink {
  void *self;
  int (*sweep)(void *self, const struct fit_sweep *sweep); /* collective */
};

/* Why a fit ended. */
enum fit_end { FIT_SETTLED, FIT_SWEEPS, FIT_SECONDS };

struct fit_result {
  enum fit_end end;
  gidx sweeps, best;
  idx top_s; /* atoms a row: no more than there are */
};

/* Collective; the same status on every rank.  ERR_INPUT: too few rows, or what seed_run() and
 * refit_state_load() refuse. */
int fit_run(const struct fit_task *task, struct comm *c, const struct fit_sink *sink,
            struct fit_result *result);

#endif
