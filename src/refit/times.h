/* SPDX-License-Identifier: BSD-3-Clause
 * How long a refit takes on CPUs, by the rates of a machine.
 *
 * Floor: refit.  Not collective. */
#ifndef REFIT_TIMES_H
#define REFIT_TIMES_H

#include "model/rates.h"
#include "refit/state.h"

/* A sweep of refit or of fit --update atoms, which moves the atoms class by class.  rows: of all
 * ranks; s: atoms per row; q: directions per atom. */
struct sweep_shape {
  double rows, atoms, columns;
  idx d, s, q, ranks;
};

/* The work of a sweep, and of the residuals that are computed at its start, as a number of
 * multiply-adds that take about the same time.  `sagitta-bench rates` measures how many of them all
 * ranks do per second (RATE_MOVES). */
double sweep_work(const struct sweep_shape *s);

/* The seconds of such a sweep; of computing the residuals alone; of finding the classes. */
double sweep_seconds(const struct sweep_shape *s, const struct rates *r);
double residual_seconds(const struct sweep_shape *s, const struct rates *r);
double classes_seconds(const struct sweep_shape *s, const struct rates *r);

/* Add the times of a whole job of `sagitta refit`, which ranks do together. */
struct refit_extent {
  gidx sweeps, held_out; /* held_out: rows of --holdout */
  idx q, rounds;         /* rounds: of routing */
  double held_out_bytes; /* bytes of a row of --holdout in its file */
  int reroute, has_classes;
};
void refit_times(const struct refit_task *task, const struct refit_extent *e, int ranks,
                 const struct rates *r, struct times *t);

#endif
